import { once } from "node:events";
import { createServer, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { type ConnectionLimits, defaultConnectionLimits } from "../contract/connection-limits.ts";
import { ChunkedResponse } from "./chunked-response.ts";
import { lingerAfterAnswer } from "./linger.ts";
import { listen } from "./listen.ts";
import { followCertificate, type TlsCertificate } from "./tls-certificate.ts";
import { endStalledConnections } from "./stalled-connections.ts";
import { boundConnections } from "./waiting-connections.ts";

type Fetch = (request: Request, connection?: object) => Response | Promise<Response>;

export interface HttpServer extends AsyncDisposable {
  /** Where processes on this machine reach the server. */
  readonly url: string;
  /** Has requests answered by another function from now on. */
  serve(fetch: Fetch): void;
  /** Answers requests for so long still, and closes each one's connection after its answer. */
  drain(ms: number): Promise<void>;
}

interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Whose connections are those of many callers; without it nobody's are. */
  readonly isTrustedProxy?: (address: string) => boolean;
  /** By which requests come over TLS alone; without it none do. */
  readonly certificate?: TlsCertificate | undefined;
}

/** Time for requests that are being answered when the server stops. */
const closeGraceMs = 2_000;

/** @throws StartError where the address cannot be bound */
export async function startHttpServer(
  fetch: Fetch,
  address: ListenAddress,
  limits = defaultConnectionLimits,
): Promise<HttpServer> {
  let respond = fetch;
  let isDraining = false;
  // The listener's own cleanup closes the connection before most clients have read the answer.
  const options = { autoCleanupIncoming: false };
  const listener = getRequestListener(
    (request, connection) => respond(request, connection),
    options,
  );
  const { isTrustedProxy = () => false, certificate } = address;
  const { server, followed } = createAnyServer(limits, certificate);
  boundConnections(server, { ...limits, isTrustedProxy });
  const stalled = endStalledConnections(limits);
  server.on("request", (incoming, outgoing) => {
    if (isDraining) outgoing.setHeader("connection", "close");
    stalled.watch(incoming, outgoing);
    lingerAfterAnswer(incoming, outgoing, limits);
    void listener(incoming, outgoing);
  });
  return {
    url: await listen(server, address),
    serve(other) {
      respond = other;
    },
    async drain(ms) {
      isDraining = true;
      await delay(ms);
    },
    async [Symbol.asyncDispose]() {
      stalled[Symbol.dispose]();
      followed?.[Symbol.dispose]();
      await closeServer(server);
    },
  };
}

function createAnyServer(
  limits: ConnectionLimits,
  certificate: TlsCertificate | undefined,
): { server: Server | SecureServer; followed?: Disposable } {
  const options = serverOptions(limits);
  if (certificate === undefined) return { server: createServer(options) };
  const handshakeTimeout = limits.headersSeconds * 1000;
  const server = createSecureServer({ ...options, ...certificate.pair, handshakeTimeout });
  return { server, followed: followCertificate(certificate, server) };
}

function serverOptions({ headersSeconds, idleSeconds }: ConnectionLimits): ServerOptions {
  return {
    ServerResponse: ChunkedResponse,
    keepAlive: true,
    // TCP probes find connections whose peer is lost: uploads end there before others go on.
    keepAliveInitialDelay: 30_000,
    keepAliveTimeout: idleSeconds * 1000,
    headersTimeout: headersSeconds * 1000,
    connectionsCheckingInterval: headersSeconds * 250,
    // Uploads of models have no time limit: they only have to move on.
    requestTimeout: 0,
    /** Bytes for every query parameter at its longest, percent-encoded. */
    maxHeaderSize: 65_536,
  };
}

async function closeServer(server: Server | SecureServer): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), closeGraceMs);
  await closed;
  clearTimeout(timer);
}
