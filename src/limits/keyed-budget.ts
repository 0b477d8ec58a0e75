/** Bounds how much is held at once, in all and for each key, such as bytes of a project. */
export class KeyedBudget {
  readonly #limits: { readonly all: number; readonly perKey: number };
  readonly #held = new Map<string, number>();
  #sum = 0;

  constructor(limits: { readonly all: number; readonly perKey: number }) {
    this.#limits = limits;
  }

  hasRoom(key: string, amount: number): boolean {
    const { all, perKey } = this.#limits;
    return this.#sum + amount <= all && (this.#held.get(key) ?? 0) + amount <= perKey;
  }

  /** Holds more, or less where the amount is negative, whether there is room for it or not. */
  hold(key: string, amount: number): void {
    const held = (this.#held.get(key) ?? 0) + amount;
    if (held === 0) this.#held.delete(key);
    else this.#held.set(key, held);
    this.#sum += amount;
  }
}
