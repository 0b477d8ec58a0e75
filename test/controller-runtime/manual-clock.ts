import type { Clock } from "../../src/controller-runtime/clock.ts";

export interface ManualClock extends Clock {
  /** Moves time on, and fires what falls due, in order. */
  advance(ms: number): void;
  /** Of timers that have not fired. */
  readonly pending: number;
}

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

export function createManualClock(): ManualClock {
  const timers = new Set<Timer>();
  let now = 0;
  const nextUntil = (end: number) =>
    [...timers].filter(({ due }) => due <= end).toSorted((one, other) => one.due - other.due)[0];
  return {
    now: () => now,
    date: () => new Date(Date.UTC(2026, 0, 1) + now),
    schedule: (ms, callback) => {
      const timer = { due: now + ms, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance: (ms) => {
      const end = now + ms;
      for (let timer = nextUntil(end); timer !== undefined; timer = nextUntil(end)) {
        timers.delete(timer);
        now = timer.due;
        timer.callback();
      }
      now = end;
    },
    get pending() {
      return timers.size;
    },
  };
}
