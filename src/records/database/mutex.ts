/** Lets one caller after the other go on, in the order in which they asked. */
export function createMutex(): () => Promise<() => void> {
  let last = Promise.resolve();
  return async () => {
    const { promise, resolve: end } = Promise.withResolvers<void>();
    const before = last;
    last = promise;
    await before;
    return end;
  };
}
