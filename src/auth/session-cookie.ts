import { z } from "zod";
import { seal, unseal } from "./sealed-text.ts";
import { ServiceError } from "../contract/errors.ts";
import { isReading } from "../contract/routes/route.ts";

export interface CookieSettings {
  /** Where people reach the service: with `https`, cookies are sent over nothing else. */
  readonly publicUrl?: string | undefined;
}

/**
 * The secret of the session's cookie; undefined if there is none.
 * @throws ServiceError cross_site_request where another site's page may have sent the cookie
 */
export function readSessionSecret(settings: CookieSettings, request: Request): string | undefined {
  const secret = readCookie(request, sessionCookieName(settings, request));
  if (secret !== undefined) requireSameOrigin(request);
  return secret;
}

/** Undefined where the request has no such cookie. */
function readCookie(request: Request, name: string): string | undefined {
  const cookies = (request.headers.get("cookie") ?? "").split("; ");
  return cookies.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
}

/**
 * Requires that a page of the service sends a request that changes something: pages of other ports
 * of the same host are sent cookies too, and `SameSite` does not stop theirs.
 * @throws ServiceError cross_site_request
 */
export function requireSameOrigin(request: Request): void {
  if (isReading(request)) return;
  const site = request.headers.get("sec-fetch-site");
  if (site === "same-origin") return;
  const origin = request.headers.get("origin");
  if (site === null && origin !== null && hostName(origin) === new URL(request.url).host) return;
  throw new ServiceError("cross_site_request", "A session is only for pages of the service");
}

/** `Set-Cookie` that begins a session. */
export function sessionCookie(
  settings: CookieSettings,
  request: Request,
  secret: string,
  maxAge: number,
): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Strict", `Max-Age=${maxAge}`];
  if (isSecure(settings, request)) attributes.push("Secure");
  return [`${sessionCookieName(settings, request)}=${secret}`, ...attributes].join("; ");
}

function sessionCookieName(settings: CookieSettings, request: Request): string {
  return cookieName("mos-session", settings, request);
}

/** Cookies know no ports: without one in the name, services of one host would share a session. */
function cookieName(name: string, settings: CookieSettings, request: Request): string {
  if (settings.publicUrl?.startsWith("https:")) return `__Host-${name}`;
  const numbered = `${name}-${new URL(request.url).port || "80"}`;
  return isSecure(settings, request) ? `__Host-${numbered}` : numbered;
}

/** Whether people reach the service by TLS, which it can speak itself. */
function isSecure({ publicUrl }: CookieSettings, request: Request): boolean {
  return new URL(publicUrl ?? request.url).protocol === "https:";
}

/** Undefined for the origin `null`, which sandboxed pages have. */
function hostName(origin: string): string | undefined {
  return URL.parse(origin)?.host;
}

/** How long a person may take at the issuer, seconds. */
const flowSeconds = 600;

const storedFlow = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Address of the page to open in the end. */
  returnTo: z.string(),
  /** Milliseconds since 1970. */
  expiresAt: z.number(),
});
type StoredFlow = z.infer<typeof storedFlow>;

/**
 * `Set-Cookie` that binds a sign-in to the browser which began it. It is sent with the navigation
 * by which the issuer's page leads back, so that it cannot be `Strict`.
 */
export function flowCookie(
  settings: CookieSettings,
  request: Request,
  { key, now, ...flow }: Omit<StoredFlow, "expiresAt"> & { readonly key: Buffer; now: Date },
): string {
  const expiresAt = now.getTime() + flowSeconds * 1000;
  const value = seal(JSON.stringify({ ...flow, expiresAt }), key);
  return formatFlowCookie(settings, request, value, flowSeconds);
}

/** `Set-Cookie` that ends what `flowCookie` began. */
export function endedFlowCookie(settings: CookieSettings, request: Request): string {
  return formatFlowCookie(settings, request, "", 0);
}

/** Undefined where the browser began no sign-in, or too long ago. */
export function readFlow(
  settings: CookieSettings,
  request: Request,
  key: Buffer,
  now: Date,
): StoredFlow | undefined {
  const sealed = readCookie(request, flowCookieName(settings, request));
  const flow = sealed === undefined ? undefined : unsealFlow(sealed, key);
  return flow !== undefined && flow.expiresAt > now.getTime() ? flow : undefined;
}

function unsealFlow(sealed: string, key: Buffer): StoredFlow | undefined {
  try {
    return storedFlow.parse(JSON.parse(unseal(sealed, key)));
  } catch {
    return undefined;
  }
}

function formatFlowCookie(
  settings: CookieSettings,
  request: Request,
  value: string,
  maxAge: number,
): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", `Max-Age=${maxAge}`];
  if (isSecure(settings, request)) attributes.push("Secure");
  return [`${flowCookieName(settings, request)}=${value}`, ...attributes].join("; ");
}

function flowCookieName(settings: CookieSettings, request: Request): string {
  return cookieName("mos-sign-in", settings, request);
}
