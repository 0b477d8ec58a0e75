import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { errorMessage } from "../../log/error-message.ts";
import { everyAddress, StartError } from "../../settings/parse-environment.ts";

/**
 * Binds the server, which answers by https where it has a certificate, to an address.
 * @returns the URL at which processes on this machine reach it
 */
export async function listen(
  server: Server,
  { host, port, certificate }: { host: string; port: number; certificate?: object | undefined },
): Promise<string> {
  server.listen(port, host === everyAddress ? undefined : host);
  try {
    await once(server, "listening");
  } catch (cause) {
    const message = `Cannot listen on ${host} port ${port}: ${listenErrorMessage(cause)}`;
    throw new StartError(message, { cause });
  }
  const address = boundAddress(server);
  const scheme = certificate === undefined ? "http" : "https";
  return `${scheme}://${localHostName(address)}:${address.port}`;
}

function boundAddress(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new TypeError("The server listens on no port");
  }
  return address;
}

function localHostName({ address, family }: AddressInfo): string {
  if (address === "0.0.0.0" || address === "::") return "127.0.0.1";
  return family === "IPv6" ? `[${address}]` : address;
}

function listenErrorMessage(cause: unknown): string {
  const isInUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
  return isInUse ? "the port is in use; choose another one" : errorMessage(cause);
}
