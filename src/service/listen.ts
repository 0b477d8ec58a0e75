import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { StartError } from "../settings/start-error.ts";

/** Waits until the server listens, and gives the URL at which processes on this machine reach it. */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<string> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new StartError(`Cannot listen on ${host} port ${port}: ${listenErrorMessage(cause)}`, {
      cause,
    });
  }
  const address = boundAddress(server);
  const anyAddress = address.address === "0.0.0.0" || address.address === "::";
  const name = anyAddress
    ? "127.0.0.1"
    : address.family === "IPv6"
      ? `[${address.address}]`
      : address.address;
  return `http://${name}:${address.port}`;
}

function boundAddress(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new TypeError("The server listens on no port");
  return address;
}

function listenErrorMessage(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if ("code" in cause && cause.code === "EADDRINUSE")
    return "the port is in use; set MOS_PORT to another one";
  return cause.message;
}
