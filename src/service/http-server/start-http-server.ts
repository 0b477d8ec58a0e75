import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { listen } from "./listen.ts";
import { followCertificate, type TlsCertificate } from "./tls-certificate.ts";
import { boundConnections, endStalledConnections } from "./waiting-connections.ts";
import {
  type ConnectionLimits,
  defaultConnectionLimits,
} from "../../contract/connection-limits.ts";

type Fetch = (request: Request, connection?: object) => Response | Promise<Response>;

export interface HttpServer extends AsyncDisposable {
  /** Where processes on this machine reach the server. */
  readonly url: string;
  /** Answers a request of another server in the same way. */
  readonly answer: RequestListener;
  /** Has requests answered by another function from now on. */
  serve(fetch: Fetch): void;
  /** Answers requests for so long still, and closes each one's connection after its answer. */
  drain(ms: number): Promise<void>;
}

/** Time for requests that are being answered when the server stops. */
const closeGraceMs = 2_000;

/** @throws StartError where the address cannot be bound */
export async function startHttpServer(
  fetch: Fetch,
  address: {
    readonly host: string;
    readonly port: number;
    /** Whose connections are those of many callers; without it nobody's are. */
    readonly isTrustedProxy?: (address: string) => boolean;
    /** With it requests come only over TLS; without it none do. */
    readonly certificate?: TlsCertificate | undefined;
  },
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
  const answer: RequestListener = (incoming, outgoing) => {
    if (isDraining) outgoing.setHeader("connection", "close");
    // HTTP/1.0 needs none, and the listener answers 400 without one.
    incoming.headers.host ??= "localhost";
    stalled.watch(incoming, outgoing);
    lingerAfterAnswer(incoming, outgoing, limits);
    void listener(incoming, outgoing);
  };
  server.on("request", answer);
  return {
    url: await listen(server, address),
    answer,
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

/** Chunks that were made of pieces: those of a log are written to all who follow it. */
const chunks = new WeakMap<Uint8Array, Buffer>();

const otherLength = "ERR_HTTP_CONTENT_LENGTH_MISMATCH";

/** Has each piece of a body of unknown length written as one buffer; Node's own writes four. */
class ChunkedResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
  /** What follows the announced bytes would be the next answer to whoever shares the connection. */
  override strictContentLength = true;
  #isBegun = false;

  override flushHeaders(): void {
    super.flushHeaders();
    this.#isBegun = true;
  }

  /** An answer that broke off, or would be longer, ends with its connection: Node's own throws. */
  override end(...last: never[]): this {
    try {
      return super.end(...last);
    } catch (error) {
      const isOtherLength = error instanceof Error && "code" in error && error.code === otherLength;
      if (!isOtherLength) throw error;
      return this.destroy();
    }
  }

  override write(piece: Uint8Array | string, ...rest: never[]): boolean {
    const { socket } = this;
    const isChunk = this.#isBegun && this.chunkedEncoding && rest.length === 0;
    if (!isChunk || socket === null || typeof piece === "string" || piece.length === 0) {
      return super.write(piece, ...rest);
    }
    const isTaken = socket.write(findChunk(piece));
    if (!isTaken) socket.once("drain", () => this.emit("drain"));
    return isTaken;
  }
}

function findChunk(piece: Uint8Array): Buffer {
  const known = chunks.get(piece);
  if (known !== undefined) return known;
  const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, end]);
  chunks.set(piece, chunk);
  return chunk;
}

const end = Buffer.from("\r\n");

/**
 * Reads on for a while where a request is answered before its body has come: closing the
 * connection would make the client's system throw the answer away.
 */
function lingerAfterAnswer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limits: ConnectionLimits,
): void {
  if (!hasBody(incoming)) return;
  // Node would close a connection that its client wants closed as soon as the answer is sent.
  const isLast = !outgoing.shouldKeepAlive;
  outgoing.shouldKeepAlive = true;
  const close = () => {
    if (isLast) incoming.socket.destroySoon();
  };
  outgoing.once("finish", () => {
    if (incoming.complete) close();
    else if (isFlood(incoming, outgoing)) incoming.socket.destroySoon();
    else readRest(incoming, limits, close);
  });
}

/**
 * A worker that sends more than it may, which reading the rest would cost more than refusing it. It
 * repeats the request also where it has not read the answer.
 */
function isFlood({ url = "" }: IncomingMessage, { statusCode }: ServerResponse): boolean {
  return url.startsWith("/worker/") && (statusCode === 429 || statusCode === 413);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function readRest(incoming: IncomingMessage, limits: ConnectionLimits, end: () => void): void {
  const timer = setTimeout(() => incoming.socket.destroy(), limits.lingerSeconds * 1000);
  incoming.once("close", () => clearTimeout(timer));
  incoming.once("end", end);
  let bytes = 0;
  // An earlier reader of the body keeps what it reads in memory.
  incoming.removeAllListeners("data");
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limits.lingerBytes) incoming.socket.destroy();
  });
  incoming.resume();
}
