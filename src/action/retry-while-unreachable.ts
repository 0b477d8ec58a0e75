import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { isTransient } from "../client/retry.ts";

const pauseMs = 1_000;
/** A service that is gone for longer is given up: jobs that nobody watches would cost a runner. */
const outageLimitMs = 10 * 60_000;

/** The service was gone for too long. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

/** Repeats work that may be done twice until the service is back. */
export async function retryWhileUnreachable<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  for (let lostAt: number | undefined; ; await delay(pauseMs, undefined, { signal })) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error)) throw error;
      const now = performance.now();
      if (lostAt === undefined)
        core.info(`[service] Not reachable, trying again: ${String(error)}`);
      lostAt ??= now;
      if (now - lostAt > outageLimitMs) {
        const minutes = outageLimitMs / 60_000;
        throw new UnreachableError(`The service could not be reached for ${minutes} minutes`, {
          cause: error,
        });
      }
    }
  }
}
