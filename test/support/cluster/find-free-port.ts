import { once } from "node:events";
import { createServer } from "node:net";

/** A port of the address that nobody listens on now. */
export async function findFreePort(address: string): Promise<number> {
  const server = createServer().listen(0, address);
  await once(server, "listening");
  const bound = server.address();
  server.close();
  await once(server, "close");
  if (bound === null || typeof bound === "string") throw new TypeError("The server has no port");
  return bound.port;
}
