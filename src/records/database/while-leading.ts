import { setTimeout as delay } from "node:timers/promises";
import type { Replica } from "./replica.ts";

interface LeaderLoop {
  /** Longest pause between two runs, milliseconds. */
  readonly everyMs: number;
  /** Calls back to end the pause; returns how it no longer does. */
  readonly wakeOn: (wake: () => void) => () => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Runs work at once, and again when it is woken or a pause is over, while this replica leads. What
 * wakes it during the work lets it run again right after. Disposing of it ends the signal of the
 * work and waits for it.
 */
export function whileLeading(
  replica: Pick<Replica, "isLeader">,
  work: (signal: AbortSignal) => Promise<void>,
  { everyMs, wakeOn, onError }: LeaderLoop,
): AsyncDisposable {
  const stopped = new AbortController();
  const { signal } = stopped;
  let woken = Promise.withResolvers<void>();
  const unsubscribe = wakeOn(() => woken.resolve());

  async function runUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      woken = Promise.withResolvers();
      if (replica.isLeader()) await work(signal).catch(onError);
      const pause = delay(everyMs, undefined, { signal, ref: false }).catch(() => {});
      await Promise.race([woken.promise, pause]);
    }
  }
  const running = runUntilStopped();

  return {
    async [Symbol.asyncDispose]() {
      unsubscribe();
      stopped.abort();
      await running;
    },
  };
}
