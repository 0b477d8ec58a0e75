/**
 * A mutex: callers enter one after the other, in the order in which they asked.
 * @returns a function that waits and returns how the caller leaves
 */
export function createMutex(): () => Promise<() => void> {
  let last = Promise.resolve();
  return async () => {
    const { promise, resolve: unlock } = Promise.withResolvers<void>();
    const before = last;
    last = promise;
    await before;
    return unlock;
  };
}
