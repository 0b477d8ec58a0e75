import { isIP } from "node:net";
import type { CookieSettings } from "./session-cookie.ts";
import type { RelyingParty } from "./passkeys.ts";

/**
 * Where passkeys count: at the settings' address, else on this machine by its name `localhost`.
 * Undefined where browsers have none, such as at an IP address or without TLS.
 */
export function findRelyingParty(
  { publicUrl }: CookieSettings,
  request: Request,
): RelyingParty | undefined {
  const { hostname, origin, protocol } = new URL(publicUrl ?? request.url);
  const isLocal = hostname === "localhost";
  // A request's own address decides nothing but on this machine: its sender chooses it.
  const isSure = isLocal || (publicUrl !== undefined && protocol === "https:");
  return isSure && isIP(hostname) === 0 ? { id: hostname, origin } : undefined;
}
