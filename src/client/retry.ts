import { ProblemError, UnexpectedAnswerError } from "./problem-error.ts";
import { ConnectionError } from "./transport.ts";
import type { ErrorCode } from "../contract/errors.ts";

const firstDelayMs = 200;
const longestDelayMs = 15_000;
/** An error that asks for a longer wait is thrown instead. */
const maxRetryAfterMs = 120_000;
const transientStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Do not pass without an intervention, though the error table calls them retryable. */
const permanentCodes: ReadonlySet<ErrorCode> = new Set(["internal_error", "storage_full"]);

/**
 * Repeats idempotent work after lost connections and transient failures of the service. Tries count
 * anew after one that has brought the work further.
 */
export async function retry<T>(
  work: () => Promise<T>,
  signal: AbortSignal | undefined,
  countDone: () => number = () => 0,
  tries = 5,
): Promise<T> {
  let done = countDone();
  for (let left = tries - 1; ; left--) {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      if (countDone() > done) left = tries - 1;
      done = countDone();
      if (left === 0 || !isTransient(error) || retryAfterMs(error) > maxRetryAfterMs) throw error;
      await delay(computeDelayMs(error, tries - 1 - left), signal);
    }
  }
}

/**
 * Full jitter, so that clients that failed together do not return together; not sooner than the
 * service asks.
 */
function computeDelayMs(error: unknown, attempt: number): number {
  const longestMs = Math.min(longestDelayMs, firstDelayMs * 2 ** attempt);
  return retryAfterMs(error) + Math.random() * longestMs;
}

function retryAfterMs(error: unknown): number {
  const isAnswer = error instanceof ProblemError || error instanceof UnexpectedAnswerError;
  return isAnswer ? (error.retryAfter ?? 0) * 1000 : 0;
}

/** Whether the same call may succeed later: the service is unreachable or overloaded. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ProblemError) {
    return error.retryable && !permanentCodes.has(error.problem.code);
  }
  if (error instanceof UnexpectedAnswerError) return transientStatuses.has(error.status);
  return isConnectionError(error);
}

/** Starts of error codes of the system and of undici that mean a lost connection. */
const connectionErrorCodes = [
  "EAI_AGAIN",
  "ECONN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CLOSED",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_DESTROYED",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_RESPONSE",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_SOCKET",
];

/** Whether the service could not be reached, or the connection was lost during the answer. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof ConnectionError || isCutAnswer(error)) return true;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return connectionErrorCodes.some((start) => code.startsWith(start));
}

/** What undici throws where a connection's last answer is cut off: without a code in Node's own. */
function isCutAnswer(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === "HTTPParserError" &&
    error.message.includes("Invalid EOF state")
  );
}

/**
 * Resolves after a time, in Node and in browsers.
 * @throws the signal's reason once it is aborted
 */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.reject(toError(signal.reason));
  const abort = () => reject(toError(signal?.reason));
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", abort, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("Aborted", { cause: reason });
}
