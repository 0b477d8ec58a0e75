import { ProblemError, UnexpectedAnswerError } from "./problem-error.ts";
import { ConnectionError } from "./transport.ts";
import type { ErrorCode } from "../contract/errors.ts";
import { isConnectionLost } from "../limits/network-errors.ts";
import { backOffMs, retry } from "../limits/retry.ts";

const firstDelayMs = 200;
const maxDelayMs = 15_000;
/** An error that asks for a longer wait is thrown instead. */
const maxRetryAfterMs = 120_000;
const transientStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Do not pass without an intervention, though the error table calls them retryable. */
const permanentCodes: ReadonlySet<ErrorCode> = new Set(["internal_error", "storage_full"]);

/**
 * Repeats idempotent work after lost connections and transient failures of the service. Tries count
 * from zero after one that has brought the work further.
 */
export async function retryTransient<T>(
  work: () => Promise<T>,
  signal: AbortSignal | undefined,
  countDone?: () => number,
  tries = 5,
): Promise<T> {
  const delayAfter = (error: unknown, failures: number) => {
    const waitMs = retryAfterMs(error);
    if (failures === tries || !isTransient(error) || waitMs > maxRetryAfterMs) return undefined;
    return waitMs + backOffMs(failures, maxDelayMs, firstDelayMs);
  };
  return retry(work, delayAfter, { signal, countDone });
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

/** Whether the service could not be reached, or the connection was lost during the answer. */
export function isConnectionError(error: unknown): boolean {
  return error instanceof ConnectionError || isConnectionLost(error);
}
