import { ServiceError } from "../../contract/errors.ts";
import { KeyedSemaphore } from "../../limits/keyed-semaphore.ts";

const retrySeconds = 5;

/**
 * Bounds how many requests are read at once, of all callers and of each. A request counts until the
 * caller disposes of what it entered.
 * @throws ServiceError unavailable
 */
export function createConcurrencyLimit(limits: {
  readonly all: number;
  readonly perCaller: number;
}): (caller: string) => Disposable {
  const semaphore = new KeyedSemaphore({ all: limits.all, perKey: limits.perCaller });
  return (caller) => {
    const entered = semaphore.tryAcquire(caller);
    if (entered !== undefined) return entered;
    const headers = { "retry-after": String(retrySeconds) };
    throw new ServiceError("unavailable", "Too many such requests are being read", { headers });
  };
}
