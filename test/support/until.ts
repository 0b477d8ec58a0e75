import { setTimeout as delay } from "node:timers/promises";

/** The garbage collector may take a minute to notice a new kind of resource. */
const limitMs = 240_000;
const longestPauseMs = 50;

const failure = Promise.withResolvers<never>();
// Without a test that waits, the rejection would be unhandled.
failure.promise.catch(() => {});

/** Ends every wait of this process, of now and later, with the error. */
export function failWaits(error: Error): void {
  failure.reject(error);
}

type Found<T> = T | false | undefined;

/** Checks again and again until the check finds something; gives that. */
export async function until<T>(
  what: string,
  check: () => Found<T> | Promise<Found<T>>,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    const found = await check();
    if (found !== false && found !== undefined) return found;
    if (performance.now() > deadline) throw timeoutError(what);
    await Promise.race([delay(pauseMs), failure.promise]);
  }
}

/** For what reports its changes: a check is made at each, and at no other time. */
export class ChangeSignal {
  readonly #checks = new Set<() => void>();

  readonly notify = (): void => {
    for (const check of this.#checks) check();
  };

  async until<T>(what: string, check: () => Found<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const checkOnce = () => {
      const found = check();
      if (found !== false && found !== undefined) resolve(found);
    };
    const timer = setTimeout(() => reject(timeoutError(what)), limitMs);
    // A wait that is given up, as one that lost a race, keeps no process alive.
    timer.unref();
    this.#checks.add(checkOnce);
    try {
      checkOnce();
      return await Promise.race([promise, failure.promise]);
    } finally {
      this.#checks.delete(checkOnce);
      clearTimeout(timer);
    }
  }
}

function timeoutError(what: string): Error {
  return new Error(`It did not come about within ${limitMs / 1000} s that ${what}`);
}
