import { z } from "zod";

const bindings = z.object({
  incoming: z.object({ socket: z.object({ remoteAddress: z.string().optional() }) }),
});

/** Address of the caller's socket; empty for requests that did not come over one. */
export function remoteAddress(env: unknown): string {
  return bindings.safeParse(env).data?.incoming.socket.remoteAddress ?? "";
}
