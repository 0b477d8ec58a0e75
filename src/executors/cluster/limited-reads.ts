interface WaitingRead {
  readonly node: string;
  readonly start: () => void;
}

interface ReadLimits {
  /** Reads at once. */
  readonly all: number;
  /** Of these, from one node. */
  readonly perNode: number;
}

/** Starts reads from nodes, a limited number at once: a silent node delays only its own. */
export class LimitedReads {
  readonly #limits: ReadLimits;
  readonly #running = new Map<string, number>();
  readonly #waiting: WaitingRead[] = [];
  #count = 0;

  constructor(limits: ReadLimits) {
    this.#limits = limits;
  }

  async run<T>(node: string, read: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ node, start: resolve });
    this.#startNext();
    await promise;
    try {
      return await read();
    } finally {
      this.#count--;
      this.#running.set(node, this.#runningOn(node) - 1);
      if (this.#runningOn(node) === 0) this.#running.delete(node);
      this.#startNext();
    }
  }

  #startNext(): void {
    if (this.#count >= this.#limits.all) return;
    const index = this.#waiting.findIndex(
      ({ node }) => this.#runningOn(node) < this.#limits.perNode,
    );
    const [next] = index === -1 ? [] : this.#waiting.splice(index, 1);
    if (next === undefined) return;
    this.#count++;
    this.#running.set(next.node, this.#runningOn(next.node) + 1);
    next.start();
  }

  #runningOn(node: string): number {
    return this.#running.get(node) ?? 0;
  }
}
