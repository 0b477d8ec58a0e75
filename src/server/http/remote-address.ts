import { isIP, isIPv6 } from "node:net";
import { z } from "zod";

const bindings = z.object({
  incoming: z.object({ socket: z.object({ remoteAddress: z.string().optional() }) }),
});

/** Whether an address is that of a proxy of the administrator's. */
export type IsTrustedProxy = (address: string) => boolean;

/** What limits of strangers count a request by. */
export function callerGroup(
  { isTrustedProxy }: { readonly isTrustedProxy: IsTrustedProxy },
  request: Request,
  env: unknown,
): string {
  const forwardedFor = request.headers.get("x-forwarded-for");
  return addressGroup(remoteAddress(env, forwardedFor, isTrustedProxy));
}

/**
 * Address of the caller: of its socket, and behind trusted proxies the last one in X-Forwarded-For
 * that is not theirs. Empty for requests that did not come over a socket.
 */
function remoteAddress(
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

const networkGroups = 4;
const allGroups = 8;

/** An IPv4 address in the form of IPv6 as IPv4, and others as they are. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/**
 * What limits count by: an IPv4 address, or the /64 network of an IPv6 address, of which one host
 * can have all.
 */
export function addressGroup(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.toLowerCase().split("::");
  const [first, last] = [listGroups(head), listGroups(tail ?? "")];
  const zeros = tail === undefined ? 0 : Math.max(0, allGroups - first.length - last.length);
  const groups = [...first, ...Array.from({ length: zeros }, () => "0"), ...last];
  const network = groups.slice(0, networkGroups).map((group) => group.replace(/^0+(?=.)/, ""));
  return `${network.join(":")}::/64`;
}

function listGroups(text: string): string[] {
  return text === "" ? [] : text.split(":");
}
