import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIPv6 } from "node:net";

/** Below those that systems give to connections: one of them might have the port when it is bound. */
const ports = { least: 20_000, below: 30_000 };

/**
 * A port of the address that nothing listens on. No other process is given it until this one ends:
 * a server may be slow to listen, and away for a while.
 */
export async function findFreePort(address = "127.0.0.1"): Promise<number> {
  const port = randomInt(ports.least, ports.below);
  const claim = createSocket(isIPv6(address) ? "udp6" : "udp4").unref();
  const server = createServer();
  try {
    claim.bind(port, address);
    await once(claim, "listening");
    server.listen(port, address);
    await once(server, "listening");
  } catch (error) {
    claim.close();
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE")
      return findFreePort(address);
    throw error;
  }
  server.close();
  await once(server, "close");
  return port;
}
