import { ServiceError } from "../../contract/errors.ts";

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
  const add = (caller: string, count: number) => {
    total += count;
    const own = (entered.get(caller) ?? 0) + count;
    if (own === 0) entered.delete(caller);
    else entered.set(caller, own);
  };
  return (caller) => {
    if (total >= all || (entered.get(caller) ?? 0) >= perCaller) throw tooManyError();
    add(caller, 1);
    return { [Symbol.dispose]: () => add(caller, -1) };
  };
}

function tooManyError(): ServiceError {
  const headers = { "retry-after": String(retrySeconds) };
  return new ServiceError("unavailable", "Too many such requests are being read", { headers });
}
