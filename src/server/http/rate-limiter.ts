import type { ServiceError } from "../../contract/errors.ts";
import { TokenBuckets } from "../../limits/token-buckets.ts";
import { quotaError } from "../../contract/people/usage.ts";

const minuteMs = 60_000;
const windowSeconds = 60;
/** Callers that are remembered. */
const maxCallers = 10_000;

export interface RateLimiter {
  readonly perMinute: number;
  /** @throws ServiceError too_many_requests for the requests of a caller beyond its allowance */
  take(caller: string): void;
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
    take(caller) {
      const nowMs = now().getTime();
      if (buckets.take(caller, nowMs)) return;
      throw usedUpError(name, perMinute, buckets.count(caller, nowMs));
    },
  };
}

function usedUpError(name: string, perMinute: number, requests: number): ServiceError {
  const retrySeconds = Math.ceil(((1 - requests) / perMinute) * windowSeconds);
  return quotaError({
    code: "too_many_requests",
    message: `More than ${perMinute} requests a minute; wait ${retrySeconds} s`,
    name,
    size: perMinute,
    windowSeconds,
    retrySeconds,
  });
}
