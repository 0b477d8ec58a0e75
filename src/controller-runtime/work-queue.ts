import type { Clock } from "./clock.ts";
import { type Lane, lanes, moreUrgentLane } from "./controller.ts";

export interface QueueObserver {
  added(): void;
  retried(): void;
  /** A key left the queue after waiting this long. */
  taken(waitedSeconds: number): void;
  /** The work on a key ended after so long. */
  done(workedSeconds: number): void;
}

export interface QueueStats {
  /** Keys that can be taken now. */
  readonly depth: number;
  /** Keys that become available later. */
  readonly delayed: number;
  readonly processing: number;
  /** Age of the work in progress, summed over the keys. */
  readonly unfinishedSeconds: number;
  readonly longestRunningSeconds: number;
}

interface WorkQueueOptions {
  readonly clock: Clock;
  readonly observer?: QueueObserver | undefined;
}

/** Keys of other lanes that may overtake the oldest key in a row. */
const maxInARow = 16;
const groupMs = 250;
const firstRetryMs = 5;
const maxRetryMs = 60_000;

/**
 * A queue of keys. A key that is added again while it waits is processed once; while it is
 * processed, once more afterwards. No key is processed by two workers at the same time.
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #observer: QueueObserver | undefined;
  /** Time of addition by key, oldest first. */
  readonly #waiting: Record<Lane, Map<string, number>> = {
    urgent: new Map(),
    normal: new Map(),
    resync: new Map(),
  };
  /** Time of taking by key. */
  readonly #processing = new Map<string, number>();
  /** Keys that were added while they are processed. */
  readonly #again = new Map<string, Lane>();
  readonly #delayed: DelayedKeys;
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  readonly #drained = Promise.withResolvers<void>();
  #passedOver = 0;
  #closed = false;

  constructor({ clock, observer }: WorkQueueOptions) {
    this.#clock = clock;
    this.#observer = observer;
    this.#delayed = new DelayedKeys({ clock, onDue: (key, lane) => this.add(key, lane) });
  }

  add(key: string, lane: Lane = "normal"): void {
    if (this.#closed) return;
    this.#observer?.added();
    if (this.#processing.has(key)) this.#again.set(key, moreUrgentLane(lane, this.#again.get(key)));
    else this.#enqueue(key, lane);
  }

  /**
   * Adds the key after `ms`, unless it is taken before. Of several delays of one key the earliest
   * counts.
   */
  addAfter(key: string, ms: number, lane: Lane = "normal"): void {
    if (this.#closed) return;
    if (!(ms > 0)) {
      this.add(key, lane);
      return;
    }
    this.#delayed.addAt(this.#clock.now() + ms, key, lane);
  }

  /**
   * Adds the key at the next quarter of a second, together with others. Keys added one by one cost
   * a quarter more, and several changes of a key lead to one reconciliation.
   */
  addToGroup(key: string, lane: Lane = "normal"): void {
    if (this.#closed) return;
    this.#delayed.addAt((Math.floor(this.#clock.now() / groupMs) + 1) * groupMs, key, lane);
  }

  /** Adds the key after a delay that doubles with every retry since the last `forget`. */
  retry(key: string): void {
    if (this.#closed) return;
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#observer?.retried();
    this.addAfter(key, Math.min(firstRetryMs * 2 ** failures, maxRetryMs));
  }

  /** Resets the delay of the key's retries. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Waits for a key, for which `done` has to be called. Undefined after the queue is closed. */
  async take(): Promise<string | undefined> {
    if (this.#closed) return undefined;
    const key = this.#next();
    if (key !== undefined) return key;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#takers.push(resolve);
    return promise;
  }

  /** Ends the processing of a key. */
  done(key: string): void {
    const since = this.#processing.get(key);
    if (since === undefined) throw new RangeError(`Key "${key}" is not being processed`);
    this.#processing.delete(key);
    this.#observer?.done((this.#clock.now() - since) / 1_000);
    const lane = this.#again.get(key);
    this.#again.delete(key);
    if (this.#closed) this.#resolveIfDrained();
    else if (lane !== undefined) this.#enqueue(key, lane);
  }

  stats(): QueueStats {
    const now = this.#clock.now();
    const running = [...this.#processing.values()].map((since) => (now - since) / 1_000);
    return {
      depth: lanes.reduce((sum, lane) => sum + this.#waiting[lane].size, 0),
      delayed: this.#delayed.size,
      processing: running.length,
      unfinishedSeconds: running.reduce((sum, seconds) => sum + seconds, 0),
      longestRunningSeconds: Math.max(0, ...running),
    };
  }

  /** Drops the waiting keys, and resolves when no key is processed any more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#delayed.clear();
    for (const lane of lanes) this.#waiting[lane].clear();
    for (const resolve of this.#takers.splice(0)) resolve(undefined);
    this.#resolveIfDrained();
    await this.#drained.promise;
  }

  #enqueue(key: string, lane: Lane): void {
    const now = this.#clock.now();
    const currentLane = lanes.find((each) => this.#waiting[each].has(key));
    const since = currentLane === undefined ? now : (this.#waiting[currentLane].get(key) ?? now);
    const target = moreUrgentLane(lane, currentLane);
    if (target === currentLane) return;
    if (currentLane !== undefined) this.#waiting[currentLane].delete(key);
    this.#waiting[target].set(key, since);
    const taker = this.#takers.shift();
    if (taker !== undefined) taker(this.#next());
  }

  #next(): string | undefined {
    const heads = lanes.flatMap((lane) => {
      const [head] = this.#waiting[lane];
      return head === undefined ? [] : [{ lane, key: head[0], since: head[1] }];
    });
    const [best] = heads;
    if (best === undefined) return undefined;
    const oldest = heads.reduce((one, other) => (other.since <= one.since ? other : one));
    const chosen = this.#passedOver < maxInARow ? best : oldest;
    this.#passedOver = chosen === oldest ? 0 : this.#passedOver + 1;
    this.#waiting[chosen.lane].delete(chosen.key);
    this.#delayed.delete(chosen.key);
    const now = this.#clock.now();
    this.#processing.set(chosen.key, now);
    this.#observer?.taken((now - chosen.since) / 1_000);
    return chosen.key;
  }

  #resolveIfDrained(): void {
    if (this.#processing.size === 0) this.#drained.resolve();
  }
}

interface Delayed {
  readonly due: number;
  readonly lane: Lane;
}

interface DelayedKeysOptions {
  readonly clock: Clock;
  readonly onDue: (key: string, lane: Lane) => void;
}

/** Keys that wait for their time, with one timer for all. */
class DelayedKeys {
  readonly #clock: Clock;
  readonly #onDue: (key: string, lane: Lane) => void;
  readonly #keys = new Map<string, Delayed>();
  /** When the timer fires, and how to cancel it. */
  #wakeAt = Infinity;
  #cancelWake: () => void = () => {};

  constructor({ clock, onDue }: DelayedKeysOptions) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Of several times of one key the earliest counts. */
  addAt(due: number, key: string, lane: Lane): void {
    const earlier = this.#keys.get(key);
    if (earlier !== undefined && earlier.due <= due) return;
    this.#keys.set(key, { due, lane });
    this.#wakeBy(due);
  }

  delete(key: string): void {
    this.#keys.delete(key);
  }

  clear(): void {
    this.#cancelWake();
    this.#keys.clear();
  }

  #wakeBy(due: number): void {
    if (due >= this.#wakeAt) return;
    this.#cancelWake();
    this.#wakeAt = due;
    this.#cancelWake = this.#clock.schedule(due - this.#clock.now(), () => this.#wake());
  }

  #wake(): void {
    const now = this.#clock.now();
    let next = Infinity;
    for (const [key, { due, lane }] of this.#keys) {
      if (due > now) next = Math.min(next, due);
      else {
        this.#keys.delete(key);
        this.#onDue(key, lane);
      }
    }
    this.#wakeAt = Infinity;
    this.#wakeBy(next);
  }
}
