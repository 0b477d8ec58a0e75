import { logLine } from "./print-output.ts";
import { isTransient } from "../client/retry.ts";
import { retry } from "../limits/retry.ts";
import { errorMessage } from "../log/error-message.ts";

const pauseMs = 1_000;
/** After that the step gives up: it would occupy a runner. */
const outageLimitMs = 10 * 60_000;

/** The service was unreachable for too long. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";

  constructor(cause: unknown) {
    const minutes = outageLimitMs / 60_000;
    super(`The service could not be reached for ${minutes} minutes: ${errorMessage(cause)}`, {
      cause,
    });
  }
}

/**
 * Repeats idempotent work until the service is reachable.
 * @throws UnreachableError
 */
export async function retryWhileUnreachable<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const delayAfter = (error: unknown, failures: number, failingMs: number) => {
    if (!isTransient(error)) return undefined;
    if (failures === 1) logLine(`[service] Not reachable, trying again: ${String(error)}`);
    if (failingMs > outageLimitMs) throw new UnreachableError(error);
    return pauseMs;
  };
  return retry(work, delayAfter, { signal });
}
