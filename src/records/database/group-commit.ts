/**
 * Lets callers share flushes to the disk. Each promise resolves after a flush that began later than
 * its call; all calls that come while a flush runs wait for the same next one.
 */
export function groupCommit(flush: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | undefined;
  const flushAfter = async (before: Promise<unknown>) => {
    await Promise.allSettled([before]);
    next = undefined;
    await flush();
  };
  return () => {
    if (next === undefined) {
      next = flushAfter(running);
      running = next;
    }
    return next;
  };
}
