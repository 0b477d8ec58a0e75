import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { isTransient } from "../client/retry.ts";

const pauseMs = 1_000;
/** After that the step gives up: it would occupy a runner. */
const outageLimitMs = 10 * 60_000;

/** The service was unreachable for too long. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";

  constructor(cause: unknown) {
    const minutes = outageLimitMs / 60_000;
    super(`The service could not be reached for ${minutes} minutes`, { cause });
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
  for (let lostAt: number | undefined; ; await delay(pauseMs, undefined, { signal })) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error)) throw error;
      const now = performance.now();
      if (lostAt === undefined) {
        core.info(`[service] Not reachable, trying again: ${String(error)}`);
      }
      lostAt ??= now;
      if (now - lostAt > outageLimitMs) throw new UnreachableError(error);
    }
  }
}
