import type { Clock } from "./clock.ts";

interface Allowance {
  readonly left: number;
  readonly at: number;
}

/** Events of one object in a row; after them, one every `allowanceMs`. */
const maxInARow = 25;
const allowanceMs = 300_000;
/** Objects whose allowance is known. */
const maxObjects = 4_096;

/** Limits the rate of events of each object. */
export class EventAllowances {
  readonly #clock: Clock;
  readonly #byUid = new Map<string, Allowance>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether another event of the object is allowed; counts it if so. */
  take(uid: string): boolean {
    const now = this.#clock.now();
    const before = this.#byUid.get(uid) ?? { left: maxInARow, at: now };
    const left = Math.min(maxInARow, before.left + (now - before.at) / allowanceMs);
    this.#byUid.delete(uid);
    this.#byUid.set(uid, { left: left < 1 ? left : left - 1, at: now });
    const [oldest] = this.#byUid.keys();
    if (oldest !== undefined && this.#byUid.size > maxObjects) this.#byUid.delete(oldest);
    return left >= 1;
  }
}
