/**
 * Runs work again after each failure for which `delayAfter` gives a delay in milliseconds; without
 * one, the error is thrown. Failures, and the time since the first of them, start over after one
 * that has brought the work further.
 * @throws what `delayAfter` throws; the signal's reason once it is aborted
 */
export async function retry<T>(
  work: () => Promise<T>,
  delayAfter: (error: unknown, failures: number, failingMs: number) => number | undefined,
  {
    signal,
    countDone = () => 0,
  }: { signal?: AbortSignal | undefined; countDone?: (() => number) | undefined } = {},
): Promise<T> {
  let done = countDone();
  let failures = 0;
  let failingSince = 0;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      const doneNow = countDone();
      if (doneNow > done) failures = 0;
      done = Math.max(done, doneNow);
      const now = performance.now();
      if (failures === 0) failingSince = now;
      failures += 1;
      const delayMs = delayAfter(error, failures, now - failingSince);
      if (delayMs === undefined) throw error;
      await delay(delayMs, signal);
    }
  }
}

/**
 * Delay after a number of failures in a row, in milliseconds. It doubles with each, with a random
 * part so that clients that failed together do not return together.
 */
export function backOffMs(failures: number, maxMs: number, firstMs = 100): number {
  if (failures === 0) return 0;
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (0.5 + Math.random() / 2);
}

/**
 * Resolves after a time, in Node and in browsers.
 * @throws the signal's reason once it is aborted
 */
export async function delay(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const onAbort = () => resolve();
  signal?.addEventListener("abort", onAbort);
  await promise;
  clearTimeout(timer);
  signal?.removeEventListener("abort", onAbort);
  signal?.throwIfAborted();
}
