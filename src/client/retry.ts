import { setTimeout as delay } from "node:timers/promises";
import type { ErrorCode } from "../contract/errors.ts";
import { ProblemError, UnexpectedAnswerError } from "./problem-error.ts";

const tries = 5;
const firstDelayMs = 200;
/** A caller that is asked to wait longer is told so instead. */
const maxRetryAfterMs = 120_000;
const transientStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Pass only after somebody did something about them. */
const permanentCodes: ReadonlySet<ErrorCode> = new Set(["internal_error", "storage_full"]);

/** Repeats work that may be done twice: after lost connections and passing failures of the service. */
export async function retry<T>(
  work: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let left = tries - 1; ; left--) {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      if (left === 0 || !isTransient(error) || retryAfterMs(error) > maxRetryAfterMs) throw error;
      await delay(computeDelayMs(error, tries - 1 - left), undefined, signal && { signal });
    }
  }
}

/** Full jitter, so that clients that failed together do not come back together; not sooner than the service asks. */
function computeDelayMs(error: unknown, attempt: number): number {
  return retryAfterMs(error) + Math.random() * firstDelayMs * 2 ** attempt;
}

function retryAfterMs(error: unknown): number {
  const isAnswer = error instanceof ProblemError || error instanceof UnexpectedAnswerError;
  return isAnswer ? (error.retryAfter ?? 0) * 1000 : 0;
}

/** Whether the same call may succeed later: the service is not there, or has too much to do. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ProblemError)
    return error.retryable && !permanentCodes.has(error.problem.code);
  if (error instanceof UnexpectedAnswerError) return transientStatuses.has(error.status);
  return isConnectionError(error);
}

/** Whether the service could not be reached, or was lost while it answered. */
export function isConnectionError(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_(SOCKET|CONNECT_TIMEOUT|HEADERS_TIMEOUT|BODY_TIMEOUT|CLOSED|DESTROYED|RESPONSE))/.test(
    code,
  );
}
