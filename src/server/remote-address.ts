import { isIP } from "node:net";
import { z } from "zod";
import { plainAddress } from "./address-group.ts";

const bindings = z.object({
  incoming: z.object({ socket: z.object({ remoteAddress: z.string().optional() }) }),
});

/** Whether an address is that of a proxy of the administrator's. */
export type IsTrustedProxy = (address: string) => boolean;

/**
 * Address of the caller: of its socket, and behind trusted proxies the last one in X-Forwarded-For
 * that is none of theirs. Empty for requests that did not come over a socket.
 */
export function remoteAddress(
  env: unknown,
  forwardedFor: string | null,
  isTrustedProxy: IsTrustedProxy,
): string {
  const address = plainAddress(bindings.safeParse(env).data?.incoming.socket.remoteAddress ?? "");
  if (forwardedFor === null || !isTrustedProxy(address)) return address;
  const named = forwardedFor.split(",").map((each) => plainAddress(each.trim()));
  const caller = named.findLast((each) => !isTrustedProxy(each)) ?? "";
  return isIP(caller) === 0 ? address : caller;
}
