import type { Clock } from "./clock.ts";
import type { Lane } from "./lane.ts";

interface Delayed {
  readonly due: number;
  readonly lane: Lane;
}

interface DelayedKeysOptions {
  readonly clock: Clock;
  readonly onDue: (key: string, lane: Lane) => void;
}

/** Keys that wait for their time, with one timer for all. */
export class DelayedKeys {
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
