import type { Dispatcher } from "undici";
import sendRequest from "undici/lib/api/api-request.js";
import Pool from "undici/lib/dispatcher/pool.js";
import type { ApiRequest, Verb } from "./api-request.ts";
import type { ClusterAccess } from "./cluster-access.ts";
import { KubernetesError, responseError } from "./kubernetes-error.ts";
import { decodeStatus, protobufContentType } from "./protobuf/responses.ts";
import "../limits/stray-answers.ts";
import { isClosedByClient, isUnsent } from "../limits/network-errors.ts";
import { backOffMs, retry } from "../limits/retry.ts";

// `undici` itself loads its fetch, cache, mocks and proxies too: 11 MB.
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Time limit of the call with all its retries; 30 seconds by default. */
  readonly deadlineMs?: number;
}

/** One HTTP request to the API server, for metrics. */
export interface ClusterCall {
  readonly verb: Verb;
  /** For instance `jobs`, `compressionjobs/status`, `pods/log`. */
  readonly resource: string;
  /** The HTTP status, or `none` without a response. */
  readonly code: string;
  /** Until the end of the response; of a stream, until its start. */
  readonly seconds: number;
}

interface StreamOptions {
  readonly signal?: AbortSignal;
  /** Silence after which the connection counts as lost. */
  readonly silenceMs: number;
  readonly headersMs: number;
}

export interface Transport {
  /**
   * Returns the body of the response, the caller's own. Retries the request where that may help and
   * does no harm.
   */
  send(request: ApiRequest, options: CallOptions): Promise<Uint8Array<ArrayBuffer>>;
  /** Returns the body of the response as a stream. Never retries. */
  open(request: ApiRequest, options: StreamOptions): AsyncGenerator<Uint8Array, void, undefined>;
  close(): Promise<void>;
}

type ResponseBody = Dispatcher.ResponseData["body"];

interface Connection {
  readonly pool: Pool;
  readonly access: ClusterAccess;
  readonly userAgent: string;
  readonly onCall: (call: ClusterCall) => void;
}

interface Limits {
  readonly headersTimeout: number;
  readonly bodyTimeout: number;
  readonly signal: AbortSignal | undefined;
}

const defaultDeadlineMs = 30_000;

/**
 * Keeps connections open in one pool; over HTTP/2, one connection carries a hundred calls at once.
 */
export function createTransport(
  access: ClusterAccess,
  options: Pick<Connection, "userAgent" | "onCall">,
): Transport {
  const pool = new Pool(access.url, {
    connect: { timeout: 10_000, ...access.tls },
    keepAliveTimeout: 60_000,
  });
  const connection = { pool, access, ...options };
  return {
    send: (request, callOptions) => sendWithRetries(connection, request, callOptions),
    open: (request, streamOptions) => openStream(connection, request, streamOptions),
    close: () => pool.destroy(),
  };
}

async function sendWithRetries(
  connection: Connection,
  request: ApiRequest,
  { signal, deadlineMs = defaultDeadlineMs }: CallOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  using deadline = createDeadline(request.action, deadlineMs, signal);
  // One third until silence is noticed, one until undici closes the connection, one for a new one.
  const silenceMs = Math.ceil(deadlineMs / 3);
  const limits = { headersTimeout: silenceMs, bodyTimeout: silenceMs, signal: deadline.signal };
  const send = async () =>
    new Uint8Array(await sendOnce(connection, request, limits, (body) => body.arrayBuffer()));
  const delayAfter = (error: unknown, attempt: number) => {
    const wait = retryDelayMs(request, error, attempt);
    return wait !== undefined && performance.now() + wait <= deadline.at ? wait : undefined;
  };
  return await retry(send, delayAfter, { signal: deadline.signal });
}

async function* openStream(
  connection: Connection,
  request: ApiRequest,
  { signal, headersMs, silenceMs }: StreamOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const limits = { headersTimeout: headersMs, bodyTimeout: silenceMs, signal };
  const body = await sendOnce(connection, request, limits, async (stream) => stream);
  try {
    yield* body;
  } catch (error) {
    throw connectionError(request.action, error, signal);
  }
}

async function sendOnce<T>(
  connection: Connection,
  request: ApiRequest,
  limits: Limits,
  read: (body: ResponseBody) => Promise<T>,
): Promise<T> {
  const start = performance.now();
  let code = "none";
  try {
    const response = await sendAuthorized(connection, request, limits);
    code = String(response.statusCode);
    if (response.statusCode < 400) return await read(response.body);
    throw await readResponseError(request, response);
  } catch (error) {
    throw error instanceof KubernetesError
      ? error
      : connectionError(request.action, error, limits.signal);
  } finally {
    const { verb, resource } = request;
    connection.onCall({ verb, resource, code, seconds: (performance.now() - start) / 1000 });
  }
}

async function readResponseError(
  { action }: ApiRequest,
  { statusCode, headers, body }: Dispatcher.ResponseData,
): Promise<KubernetesError> {
  const isProtobuf = String(headers["content-type"]).startsWith(protobufContentType);
  const text = isProtobuf ? JSON.stringify(decodeStatus(await body.bytes())) : await body.text();
  return responseError(action, statusCode, text, String(headers["retry-after"]));
}

/** Credentials that the server refuses are read again once: they may have been replaced. */
async function sendAuthorized(connection: Connection, request: ApiRequest, limits: Limits) {
  const { signal = null, ...timeouts } = limits;
  const send = async (options: { refresh: boolean }) =>
    sendRequest.call(connection.pool, {
      ...(await httpRequest(connection, request, options)),
      ...timeouts,
      signal,
    });
  const response = await send({ refresh: false });
  if (response.statusCode !== 401) return response;
  await response.body.dump();
  return send({ refresh: true });
}

async function httpRequest(
  { access, userAgent }: Connection,
  { method, path, accept, contentType, body }: ApiRequest,
  options: { refresh: boolean },
) {
  const headers = {
    accept,
    "user-agent": userAgent,
    "content-type": contentType,
    ...(await access.authorize(options)),
  };
  return { method, path, headers, body: body ?? null };
}

/** The reason of the signal where the caller aborted the call. */
function connectionError(action: string, error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  const message = `Cannot ${action}: ${error instanceof Error ? error.message : String(error)}`;
  return new KubernetesError(message, { reason: "ConnectionFailed", cause: error });
}

/** A time limit of a call, to be disposed of when the call ends. */
interface Deadline extends Disposable {
  /**
   * Aborted at the deadline with a `KubernetesError`, or when the signal of the caller is aborted.
   */
  readonly signal: AbortSignal;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
}

function createDeadline(action: string, ms: number, parent: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  const message = `Cannot ${action}: no answer within ${ms / 1000} s`;
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

const maxAttempts = 8;
const maxRetryMs = 5_000;
const transientStatuses = new Set([500, 502, 503, 504]);

/** Delay before the request is retried, in milliseconds; undefined when it is not to be retried. */
function retryDelayMs(request: ApiRequest, error: unknown, attempt: number): number | undefined {
  if (!(error instanceof KubernetesError) || attempt >= maxAttempts) return undefined;
  const wasUnsent = error.status === 429 || isUnsent(error.cause);
  const isLost = error.status === undefined && !isClosedByClient(error.cause);
  const isTransient = isLost || (error.status !== undefined && transientStatuses.has(error.status));
  if (!wasUnsent && !(isTransient && request.repeatable)) return undefined;
  return (error.retryAfterSeconds ?? 0) * 1000 + backOffMs(attempt, maxRetryMs);
}
