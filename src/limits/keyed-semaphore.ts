interface SemaphoreLimits {
  /** Holders at once, of all keys. */
  readonly all?: number;
  /** Of these, holders with the same key. */
  readonly perKey: number;
  /** Callers of `acquire()` that may wait for one key. */
  readonly waitingPerKey?: number;
}

interface Waiting {
  readonly key: string;
  readonly resume: (held: Disposable) => void;
}

/** Bounds how much is done at once, in all and for each key, such as a project, caller or node. */
export class KeyedSemaphore {
  readonly #limits: Required<SemaphoreLimits>;
  readonly #held = new Map<string, number>();
  readonly #waitingOf = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #count = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = { all: Infinity, waitingPerKey: Infinity, ...limits };
  }

  /** What the caller holds until it disposes of it; undefined where a limit is reached. */
  tryAcquire(key: string): Disposable | undefined {
    if (!this.#hasRoom(key)) return undefined;
    return this.#hold(key);
  }

  /**
   * Waits until the limits allow the caller to go on: first come, first served, except for keys
   * whose own limit is reached. Undefined where too many wait for the key.
   */
  async acquire(key: string): Promise<Disposable | undefined> {
    const held = this.tryAcquire(key);
    if (held !== undefined) return held;
    if ((this.#waitingOf.get(key) ?? 0) >= this.#limits.waitingPerKey) return undefined;
    add(this.#waitingOf, key, 1);
    return new Promise((resume) => this.#waiting.push({ key, resume }));
  }

  #hasRoom(key: string): boolean {
    return this.#count < this.#limits.all && (this.#held.get(key) ?? 0) < this.#limits.perKey;
  }

  #hold(key: string): Disposable {
    this.#count++;
    add(this.#held, key, 1);
    return { [Symbol.dispose]: () => this.#release(key) };
  }

  #release(key: string): void {
    this.#count--;
    add(this.#held, key, -1);
    const index = this.#waiting.findIndex((waiting) => this.#hasRoom(waiting.key));
    const [next] = index === -1 ? [] : this.#waiting.splice(index, 1);
    if (next === undefined) return;
    add(this.#waitingOf, next.key, -1);
    next.resume(this.#hold(next.key));
  }
}

function add(counts: Map<string, number>, key: string, count: number): void {
  const sum = (counts.get(key) ?? 0) + count;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}
