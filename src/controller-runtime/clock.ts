/** Time as the runtime sees it; tests use a clock of their own. */
export interface Clock {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** The wall clock, for times that others read. */
  date(): Date;
  /**
   * Calls back once after `ms`, or earlier where that exceeds the longest timer. Returns a function
   * that cancels it.
   */
  schedule(ms: number, callback: () => void): () => void;
}

/** Node fires a longer timer at once. */
const maxTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => new Date(),
  schedule: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(0, ms), maxTimerMs));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or when the signal is aborted. */
export async function sleepUnlessAborted(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const stop = () => {
      cancel();
      signal.removeEventListener("abort", stop);
      resolve();
    };
    const cancel = clock.schedule(ms, stop);
    signal.addEventListener("abort", stop);
  });
}

/** A moment on both clocks, taken by `takeMoment`. */
export interface Moment {
  readonly now: number;
  readonly date: number;
}

export function takeMoment(clock: Clock): Moment {
  return { now: clock.now(), date: clock.date().getTime() };
}

/**
 * Milliseconds since the moment, by the clock that shows more: the monotonic clock may stop while
 * the machine sleeps, and the wall clock may be set back.
 */
export function elapsedMs(clock: Clock, since: Moment): number {
  return Math.max(clock.now() - since.now, clock.date().getTime() - since.date);
}
