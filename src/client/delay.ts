/**
 * Resolves after a time, in Node and in browsers.
 * @throws the signal's reason once it is aborted
 */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.reject(toError(signal.reason));
  const abort = () => reject(toError(signal?.reason));
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", abort, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  });
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("Aborted", { cause: reason });
}
