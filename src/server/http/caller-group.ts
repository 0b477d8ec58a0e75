import { addressGroup, remoteAddress } from "./remote-address.ts";
import type { ServerContext } from "./server-context.ts";

/** What limits of strangers count a request by. */
export function callerGroup(
  { isTrustedProxy }: Pick<ServerContext, "isTrustedProxy">,
  request: Request,
  env: unknown,
): string {
  const forwardedFor = request.headers.get("x-forwarded-for");
  return addressGroup(remoteAddress(env, forwardedFor, isTrustedProxy));
}
