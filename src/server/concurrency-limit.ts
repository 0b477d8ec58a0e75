import { ServiceError } from "../contract/errors.ts";

interface ConcurrencyLimits {
  readonly all: number;
  readonly perCaller: number;
}

const retrySeconds = 5;

/**
 * Bounds how many things are done at once, of all callers and of each. What a caller enters lasts
 * until it is disposed of.
 * @throws ServiceError unavailable
 */
export function createConcurrencyLimit({
  all,
  perCaller,
}: ConcurrencyLimits): (caller: string) => Disposable {
  const entered = new Map<string, number>();
  let total = 0;
  return (caller) => {
    const own = entered.get(caller) ?? 0;
    if (total >= all || own >= perCaller) {
      const headers = { "retry-after": String(retrySeconds) };
      throw new ServiceError("unavailable", "Too many such requests are being read", { headers });
    }
    total += 1;
    entered.set(caller, own + 1);
    return {
      [Symbol.dispose]() {
        total -= 1;
        const left = (entered.get(caller) ?? 1) - 1;
        if (left === 0) entered.delete(caller);
        else entered.set(caller, left);
      },
    };
  };
}
