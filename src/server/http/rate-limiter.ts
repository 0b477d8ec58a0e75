import type { ServiceError } from "../../contract/errors.ts";
import { quotaError } from "../../contract/people/usage.ts";

interface RateLimit {
  /** As headers name it. */
  readonly name: string;
  readonly perMinute: number;
  readonly now: () => Date;
}

interface Allowance {
  requests: number;
  at: number;
}

const minuteMs = 60_000;
const windowSeconds = 60;
/** Callers that are remembered; the one that asked least recently is forgotten first. */
const maxCallers = 10_000;

export interface RateLimiter {
  readonly perMinute: number;
  /** @throws ServiceError too_many_requests for the requests of a caller beyond its allowance */
  take(caller: string): void;
  /** Requests that the caller could make at once. */
  countLeft(caller: string): number;
}

/** Limits requests by their callers: a minute's may come at once, and more as time goes by. */
export function createRateLimiter({ name, perMinute, now }: RateLimit): RateLimiter {
  const allowances = new Map<string, Allowance>();
  const countLeft = (caller: string): number => {
    const known = allowances.get(caller);
    if (known === undefined) return perMinute;
    const elapsedMs = Math.max(0, now().getTime() - known.at);
    return Math.min(perMinute, known.requests + (elapsedMs / minuteMs) * perMinute);
  };
  return {
    perMinute,
    countLeft,
    take(caller) {
      const requests = countLeft(caller);
      const isAllowed = requests >= 1;
      allowances.delete(caller);
      // Also of a refusal: a clock that was set back would refuse until it is where it was.
      const left = isAllowed ? requests - 1 : requests;
      allowances.set(caller, { requests: left, at: now().getTime() });
      if (allowances.size > maxCallers) forgetOldest(allowances);
      if (!isAllowed) throw usedUpError(name, perMinute, requests);
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

function forgetOldest(allowances: Map<string, Allowance>): void {
  const [oldest] = allowances.keys();
  if (oldest !== undefined) allowances.delete(oldest);
}
