import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { listen } from "./listen.ts";

type Fetch = (request: Request, connection?: object) => Response | Promise<Response>;

export interface HttpServer extends AsyncDisposable {
  /** Where processes on this machine reach the server. */
  readonly url: string;
  /** Has requests answered by another function from now on. */
  serve(fetch: Fetch): void;
}

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Time for requests that are being answered when the server stops. */
const closeGraceMs = 2_000;

const serverOptions = {
  keepAlive: true,
  // TCP probes find connections whose peer is lost: their uploads must end before another goes on.
  keepAliveInitialDelay: 30_000,
  keepAliveTimeout: 60_000,
  // Uploads of models have no time limit: only the time for the headers is limited.
  requestTimeout: 0,
  /** Bytes for every query parameter at its longest, percent-encoded. */
  maxHeaderSize: 65_536,
};

/** @throws StartError where the address cannot be bound */
export async function startHttpServer(fetch: Fetch, address: ListenAddress): Promise<HttpServer> {
  let respond = fetch;
  const options = { overrideGlobalObjects: false };
  const listener = getRequestListener(
    (request, connection) => respond(request, connection),
    options,
  );
  const server = createServer(serverOptions, (incoming, outgoing) => {
    void listener(incoming, outgoing);
  });
  return {
    url: await listen(server, address),
    serve(other) {
      respond = other;
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), closeGraceMs);
  await closed;
  clearTimeout(timer);
}
