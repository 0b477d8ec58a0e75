import type { ServiceError } from "../../contract/errors.ts";
import { TokenBuckets } from "../../limits/token-buckets.ts";
import { quotaError } from "../../contract/people/usage.ts";

const minuteMs = 60_000;
const windowSeconds = 60;
/** Callers that are remembered. */
const maxCallers = 10_000;

export interface RateLimiter {
  readonly perMinute: number;
  /**
   * Counts a request of a caller, as several where it costs more.
   * @throws ServiceError too_many_requests beyond the caller's allowance
   */
  take(caller: string, cost?: number): void;
  /** Requests that the caller could make at once. */
  countLeft(caller: string): number;
}

/**
 * Limits requests by their callers: a minute's may come at once, and more as time goes by. Headers
 * call it by the name.
 */
export function createRateLimiter(name: string, perMinute: number, now: () => Date): RateLimiter {
  const refillMs = minuteMs / perMinute;
  const buckets = new TokenBuckets({ capacity: perMinute, refillMs, maxKeys: maxCallers });
  return {
    perMinute,
    countLeft: (caller) => buckets.count(caller, now().getTime()),
    take(caller, cost = 1) {
      const nowMs = now().getTime();
      if (buckets.take(caller, nowMs, cost)) return;
      throw usedUpError(name, perMinute, cost - buckets.count(caller, nowMs));
    },
  };
}

function usedUpError(name: string, perMinute: number, missing: number): ServiceError {
  const retrySeconds = Math.ceil((missing / perMinute) * windowSeconds);
  return quotaError({
    code: "too_many_requests",
    message: `More than ${perMinute} requests a minute; wait ${retrySeconds} s`,
    name,
    size: perMinute,
    windowSeconds,
    retrySeconds,
  });
}
