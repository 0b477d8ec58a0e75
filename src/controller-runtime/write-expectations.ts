import type { Clock } from "./clock.ts";

interface Expectation {
  readonly isSeen: () => boolean;
  readonly until: number;
}

/** An event that was lost holds a key up for no longer. */
const expectationTimeoutMs = 30_000;

/** Writes of our own that the caches may not have yet, by key. */
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

  /** For how long the key waits at most until its writes are seen. 0 when all are. */
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
