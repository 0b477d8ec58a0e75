import { isReading } from "../contract/routes/route.ts";
import { ServiceError } from "../contract/errors.ts";

/** How the session's cookie is set. */
export interface CookieSettings {
  /** Where people reach the service: with `https`, cookies are sent over nothing else. */
  readonly publicUrl?: string | undefined;
}

/**
 * The secret of the session's cookie; undefined where there is none.
 * @throws ServiceError cross_site_request where another site's page may have sent the cookie
 */
export function readSessionSecret(settings: CookieSettings, request: Request): string | undefined {
  const secret = readCookie(request, sessionCookieName(settings, request));
  if (secret !== undefined) requireSameOrigin(request);
  return secret;
}

/** Undefined where the request has no such cookie. */
export function readCookie(request: Request, name: string): string | undefined {
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
  throw new ServiceError("cross_site_request", "A session is for pages of the service alone");
}

/** `Set-Cookie` that begins a session. */
export function sessionCookie(
  settings: CookieSettings,
  request: Request,
  { secret, maxAge }: { readonly secret: string; readonly maxAge: number },
): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Strict", `Max-Age=${maxAge}`];
  if (isSecure(settings, request)) attributes.push("Secure");
  return [`${sessionCookieName(settings, request)}=${secret}`, ...attributes].join("; ");
}

function sessionCookieName(settings: CookieSettings, request: Request): string {
  return cookieName("mos-session", settings, request);
}

/** Cookies know no ports: without one in the name, services of one host would share a session. */
export function cookieName(name: string, settings: CookieSettings, request: Request): string {
  if (settings.publicUrl?.startsWith("https:")) return `__Host-${name}`;
  const numbered = `${name}-${new URL(request.url).port || "80"}`;
  return isSecure(settings, request) ? `__Host-${numbered}` : numbered;
}

/** Whether people reach the service by TLS, which it can speak itself. */
export function isSecure({ publicUrl }: CookieSettings, request: Request): boolean {
  return new URL(publicUrl ?? request.url).protocol === "https:";
}

/** Undefined for the origin `null`, which sandboxed pages have. */
function hostName(origin: string): string | undefined {
  return URL.parse(origin)?.host;
}
