import { ServiceError } from "../../contract/errors.ts";
import { retry } from "../../limits/retry.ts";

/** Time for which a statement waits for another process that writes. */
const busyTimeoutMs = 5_000;
const pauseMs = 25;
/** The lowest byte of SQLite's codes for a lock that another connection has. */
const sqliteBusy = 5;

/** When a statement that begins to wait now gives up, in the time of `performance.now()`. */
export function busyDeadline(): number {
  return performance.now() + busyTimeoutMs;
}

/**
 * Runs a statement again while another process has the lock that it needs. Everything else goes on
 * meanwhile.
 * @throws ServiceError unavailable at the deadline
 */
export async function retryWhileBusy<T>(run: () => T, deadline: number): Promise<T> {
  const delayAfter = (error: unknown) => {
    if (!isBusyError(error)) return undefined;
    if (performance.now() >= deadline) throw busyError();
    return pauseMs;
  };
  return retry(async () => run(), delayAfter);
}

/** Whether a statement failed since another connection has a lock that it needs. */
export function isBusyError(error: unknown): boolean {
  if (!(error instanceof Error) || !("errcode" in error)) return false;
  return typeof error.errcode === "number" && (error.errcode & 0xff) === sqliteBusy;
}

function busyError(): ServiceError {
  const message = "Another process writes to the service's database; nothing was changed";
  return new ServiceError("unavailable", message, { headers: { "retry-after": "5" } });
}
