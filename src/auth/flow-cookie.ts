import { z } from "zod";
import { cookieName, type CookieSettings, isSecure, readCookie } from "./session-cookie.ts";
import { seal, unseal } from "./sealed-text.ts";

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
  return formatFlowCookie(settings, request, { value, maxAge: flowSeconds });
}

/** `Set-Cookie` that ends what `flowCookie` began. */
export function endedFlowCookie(settings: CookieSettings, request: Request): string {
  return formatFlowCookie(settings, request, { value: "", maxAge: 0 });
}

/** Undefined where the browser began no sign-in, or too long ago. */
export function readFlow(
  settings: CookieSettings,
  request: Request,
  { key, now }: { readonly key: Buffer; readonly now: Date },
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
  { value, maxAge }: { readonly value: string; readonly maxAge: number },
): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", `Max-Age=${maxAge}`];
  if (isSecure(settings, request)) attributes.push("Secure");
  return [`${flowCookieName(settings, request)}=${value}`, ...attributes].join("; ");
}

function flowCookieName(settings: CookieSettings, request: Request): string {
  return cookieName("mos-sign-in", settings, request);
}
