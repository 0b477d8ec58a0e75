import { type Dispatcher, Pool } from "undici";
import type { ApiRequest, Verb } from "./api-request.ts";
import { backOffMs, sleep } from "./back-off.ts";
import type { ClusterAccess } from "./cluster-access.ts";
import { decodeStatus, protobufContentType } from "./protobuf-responses.ts";
import { responseError, KubernetesError } from "./kubernetes-error.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** For the call with all its repetitions; 30 seconds by default. */
  readonly deadlineMs?: number;
}

/** One HTTP request to the API server, for metrics. */
export interface ClusterCall {
  readonly verb: Verb;
  /** For instance `jobs`, `compressionjobs/status`, `pods/log`. */
  readonly resource: string;
  /** The HTTP status, or `none` without an answer. */
  readonly code: string;
  /** Until the whole answer was there; of a stream, until it began. */
  readonly seconds: number;
}

export interface StreamOptions {
  readonly signal: AbortSignal | undefined;
  /** Silence after which the connection counts as lost. */
  readonly silenceMs: number;
  readonly headersMs: number;
}

export interface Transport {
  /** The answer's body. Repeats the request where that may help and can do no harm. */
  send(request: ApiRequest, options: CallOptions): Promise<Uint8Array>;
  /** The answer's body as it comes. Never repeated. */
  open(request: ApiRequest, options: StreamOptions): AsyncGenerator<Uint8Array, void, undefined>;
  close(): Promise<void>;
}

const defaultDeadlineMs = 30_000;
const maxAttempts = 8;
const maxRetryMs = 5_000;
const transientStatuses = new Set([500, 502, 503, 504]);
/** Errors of connections that were never made: the server has not seen the request. */
const unsentCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

interface Connection {
  readonly pool: Pool;
  readonly access: ClusterAccess;
  readonly onCall: (call: ClusterCall) => void;
}

interface Limits {
  readonly headersTimeout: number;
  readonly bodyTimeout: number;
  readonly signal?: AbortSignal;
}

/** One pool of kept connections; over HTTP/2, one connection carries a hundred calls at once. */
export function createTransport(
  access: ClusterAccess,
  onCall: (call: ClusterCall) => void,
): Transport {
  const pool = new Pool(access.url, {
    connect: { timeout: 10_000, ...access.tls },
    keepAliveTimeout: 60_000,
  });
  const connection = { pool, access, onCall };
  return {
    async send(request, { signal, deadlineMs = defaultDeadlineMs }) {
      using deadline = createDeadline(request.action, deadlineMs, signal);
      // A third until silence is noticed, a third for undici to see that the connection is dead, a third on a new one.
      const silenceMs = Math.ceil(deadlineMs / 3);
      const limits = { headersTimeout: silenceMs, bodyTimeout: silenceMs, signal: deadline.signal };
      for (let attempt = 1; ; attempt++) {
        try {
          return await sendOnce(connection, request, limits, (body) => body.bytes());
        } catch (error) {
          const wait = retryDelayMs(request, error, attempt);
          if (wait === undefined || performance.now() + wait > deadline.at) throw error;
          await sleep(wait, deadline.signal);
        }
      }
    },
    async *open(request, { signal, headersMs, silenceMs }) {
      const limits = {
        headersTimeout: headersMs,
        bodyTimeout: silenceMs,
        ...(signal && { signal }),
      };
      const body = await sendOnce(connection, request, limits, async (stream) => stream);
      try {
        yield* body;
      } catch (error) {
        throw connectionError(request.action, error, signal);
      }
    },
    close: () => pool.destroy(),
  };
}

async function sendOnce<T>(
  connection: Connection,
  request: ApiRequest,
  limits: Limits,
  read: (body: Dispatcher.ResponseData["body"]) => Promise<T>,
): Promise<T> {
  const start = performance.now();
  let code = "none";
  try {
    const answer = await sendAuthorized(connection, request, limits);
    code = String(answer.statusCode);
    if (answer.statusCode < 400) return await read(answer.body);
    const retryAfter = answer.headers["retry-after"];
    throw responseError(
      request.action,
      answer.statusCode,
      await readErrorBody(answer),
      String(retryAfter),
    );
  } catch (error) {
    throw error instanceof KubernetesError
      ? error
      : connectionError(request.action, error, limits.signal);
  } finally {
    const { verb, resource } = request;
    connection.onCall({ verb, resource, code, seconds: (performance.now() - start) / 1000 });
  }
}

/** As JSON where it is protobuf. */
async function readErrorBody({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  const isProtobuf = String(headers["content-type"]).startsWith(protobufContentType);
  return isProtobuf ? JSON.stringify(decodeStatus(await body.bytes())) : body.text();
}

/** Credentials that are refused are read again once: they may just have been replaced. */
async function sendAuthorized({ pool, access }: Connection, request: ApiRequest, limits: Limits) {
  const answer = await pool.request({
    ...(await buildHttpRequest(access, request, false)),
    ...limits,
  });
  if (answer.statusCode !== 401) return answer;
  await answer.body.dump();
  return pool.request({ ...(await buildHttpRequest(access, request, true)), ...limits });
}

async function buildHttpRequest(access: ClusterAccess, request: ApiRequest, refresh: boolean) {
  const headers = {
    accept: request.accept,
    "user-agent": "model-optimization-service",
    ...(request.contentType !== undefined && { "content-type": request.contentType }),
    ...(await access.authorize({ refresh })),
  };
  return {
    method: request.method,
    path: request.path,
    headers,
    ...(request.body !== undefined && { body: request.body }),
  };
}

/** What the caller aborted with, where it did. */
function connectionError(action: string, error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  const message = `Cannot ${action}: ${error instanceof Error ? error.message : String(error)}`;
  return new KubernetesError(message, { reason: "ConnectionFailed", cause: error });
}

/** How long to wait before the request is made again; undefined when it must not or need not be. */
function retryDelayMs(request: ApiRequest, error: unknown, attempt: number): number | undefined {
  if (!(error instanceof KubernetesError) || attempt >= maxAttempts) return undefined;
  const unseen = error.status === 429 || unsentCodes.has(networkErrorCode(error.cause));
  const lost = error.status === undefined && networkErrorCode(error.cause) !== "UND_ERR_DESTROYED";
  const isTransient = lost || (error.status !== undefined && transientStatuses.has(error.status));
  if (!unseen && !(isTransient && request.repeatable)) return undefined;
  return (error.retryAfterSeconds ?? 0) * 1000 + backOffMs(attempt, maxRetryMs);
}

function networkErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function createDeadline(action: string, ms: number, parent: AbortSignal | undefined) {
  const controller = new AbortController();
  const seconds = ms / 1000;
  const message = `Cannot ${action}: no answer within ${seconds} s`;
  const timer = setTimeout(
    () => controller.abort(new KubernetesError(message, { reason: "DeadlineExceeded" })),
    ms,
  );
  const onAbort = () => controller.abort(parent?.reason);
  parent?.addEventListener("abort", onAbort);
  if (parent?.aborted) onAbort();
  return {
    signal: controller.signal,
    at: performance.now() + ms,
    [Symbol.dispose]() {
      clearTimeout(timer);
      parent?.removeEventListener("abort", onAbort);
    },
  };
}
