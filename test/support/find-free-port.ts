import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that systems give to connections: one of them might have the port when it is bound. */
const ports = { least: 20_000, below: 30_000 };

/** A port of the address that nothing listens on. */
export async function findFreePort(address = "127.0.0.1"): Promise<number> {
  const port = randomInt(ports.least, ports.below);
  const server = createServer().listen(port, address);
  try {
    await once(server, "listening");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE")
      return findFreePort(address);
    throw error;
  }
  server.close();
  await once(server, "close");
  return port;
}
