import type { ServiceError } from "../contract/errors.ts";
import { quotaError } from "../contract/quota-error.ts";

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

/** Throws ServiceError too_many_requests for the requests of a caller beyond its allowance. */
export type TakeRequest = (caller: string) => void;

/** Limits requests by their callers: a minute's may come at once, and more as time goes by. */
export function createRateLimiter({ name, perMinute, now }: RateLimit): TakeRequest {
  const allowances = new Map<string, Allowance>();
  return (caller) => {
    const at = now().getTime();
    const known = allowances.get(caller);
    const elapsedMs = known === undefined ? minuteMs : Math.max(0, at - known.at);
    const requests = Math.min(
      perMinute,
      (known?.requests ?? 0) + (elapsedMs / minuteMs) * perMinute,
    );
    if (requests < 1) {
      throw usedUpError(name, perMinute, requests);
    }
    allowances.delete(caller);
    allowances.set(caller, { requests: requests - 1, at });
    if (allowances.size > maxCallers) forgetOldest(allowances);
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
