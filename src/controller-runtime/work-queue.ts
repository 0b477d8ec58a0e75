import type { Clock } from "./clock.ts";

/** What is urgent goes before what is normal, and both before the periodic resync. */
export type Lane = (typeof lanes)[number];

export interface QueueObserver {
  added(): void;
  retried(): void;
  /** A key was taken after it had waited so long. */
  taken(waitedSeconds: number): void;
  /** A key was done after it had been worked on so long. */
  done(workedSeconds: number): void;
}

export interface QueueStats {
  /** Keys that could be taken now. */
  readonly depth: number;
  /** Keys that wait for their time. */
  readonly delayed: number;
  readonly processing: number;
  /** Work in progress, seconds summed over the keys. */
  readonly unfinishedSeconds: number;
  readonly longestRunningSeconds: number;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly observer?: QueueObserver;
}

interface Delayed {
  readonly due: number;
  readonly lane: Lane;
}

const lanes = ["urgent", "normal", "resync"] as const;
/** Keys in a row that may pass over those of other lanes; then it is the turn of the one that has waited longest. */
const maxInARow = 16;
const groupMs = 250;
const firstRetryMs = 5;
const maxRetryMs = 60_000;

/**
 * Keys to work on. A key that is added again while it waits is worked on once; while it is worked on, once more
 * afterwards. No key is ever with two workers at a time.
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #observer: QueueObserver | undefined;
  /** Key to when it was added, oldest first. */
  readonly #waiting: Record<Lane, Map<string, number>> = {
    urgent: new Map(),
    normal: new Map(),
    resync: new Map(),
  };
  /** Key to when it was taken. */
  readonly #processing = new Map<string, number>();
  /** Keys that were added while they are worked on. */
  readonly #again = new Map<string, Lane>();
  readonly #delayed = new Map<string, Delayed>();
  /** When the first of the delayed keys is due, and how not to be woken then. */
  #wakeAt = Infinity;
  #cancelWake: () => void = () => {};
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  readonly #drained = Promise.withResolvers<void>();
  #passedOver = 0;
  #closed = false;

  constructor({ clock, observer }: WorkQueueOptions) {
    this.#clock = clock;
    this.#observer = observer;
  }

  add(key: string, lane: Lane = "normal"): void {
    if (this.#closed) return;
    this.#observer?.added();
    if (this.#processing.has(key)) this.#again.set(key, moreUrgentLane(lane, this.#again.get(key)));
    else this.#enqueue(key, lane);
  }

  /** Adds the key after `ms`, unless it is taken before. Of several delays of one key the one that ends first counts. */
  addAfter(key: string, ms: number, lane: Lane = "normal"): void {
    if (this.#closed) return;
    if (!(ms > 0)) {
      this.add(key, lane);
      return;
    }
    this.#addAt(this.#clock.now() + ms, key, lane);
  }

  /** Adds the key four times a second, with others: one by one they cost a fourth more, and what changed since is seen at one look. */
  addToGroup(key: string, lane: Lane = "normal"): void {
    if (this.#closed) return;
    this.#addAt((Math.floor(this.#clock.now() / groupMs) + 1) * groupMs, key, lane);
  }

  /** Adds the key after a delay that doubles with every retry since it was last forgotten. */
  retry(key: string): void {
    if (this.#closed) return;
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#observer?.retried();
    this.addAfter(key, Math.min(firstRetryMs * 2 ** failures, maxRetryMs));
  }

  /** Ends the key's series of retries. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Waits for a key. Each has to be given back with `done`. Undefined once the queue is closed. */
  async take(): Promise<string | undefined> {
    if (this.#closed) return undefined;
    const key = this.#next();
    if (key !== undefined) return key;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#takers.push(resolve);
    return promise;
  }

  /** Ends the work on a key that was taken. */
  done(key: string): void {
    const since = this.#processing.get(key);
    if (since === undefined) throw new RangeError(`Key "${key}" is not worked on`);
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

  /** Drops the keys that wait, and resolves when no key is worked on any more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelWake();
    this.#delayed.clear();
    for (const lane of lanes) this.#waiting[lane].clear();
    for (const resolve of this.#takers.splice(0)) resolve(undefined);
    this.#resolveIfDrained();
    await this.#drained.promise;
  }

  #addAt(due: number, key: string, lane: Lane): void {
    const earlier = this.#delayed.get(key);
    if (earlier !== undefined && earlier.due <= due) return;
    this.#delayed.set(key, { due, lane });
    this.#wakeBy(due);
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
    for (const [key, { due, lane }] of this.#delayed) {
      if (due > now) next = Math.min(next, due);
      else {
        this.#delayed.delete(key);
        this.add(key, lane);
      }
    }
    this.#wakeAt = Infinity;
    this.#wakeBy(next);
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

function moreUrgentLane(lane: Lane, other: Lane | undefined): Lane {
  return other !== undefined && lanes.indexOf(other) < lanes.indexOf(lane) ? other : lane;
}
