import type { Clock } from "./clock.ts";

interface Expectation {
  readonly isSeen: () => boolean;
  readonly until: number;
}

/** Limit of the delay of a key by an event that was lost. */
const expectationTimeoutMs = 30_000;

/** Own writes that the caches may not have received yet, by key. */
export class WriteExpectations {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Expectation[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  expect(key: string, isSeen: () => boolean): void {
    const expectation = { isSeen, until: this.#clock.now() + expectationTimeoutMs };
    const expected = this.#byKey.get(key);
    if (expected === undefined) this.#byKey.set(key, [expectation]);
    else expected.push(expectation);
  }

  /** Longest time until the key no longer waits for its writes; 0 when the caches have all. */
  remainingMs(key: string): number {
    const now = this.#clock.now();
    const unseen = (this.#byKey.get(key) ?? []).filter(
      ({ isSeen, until }) => until > now && !isSeen(),
    );
    if (unseen.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, unseen);
    return unseen.reduce((longest, { until }) => Math.max(longest, until - now), 0);
  }
}
