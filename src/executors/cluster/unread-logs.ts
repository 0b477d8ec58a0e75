/** Ended pods whose logs are still to be read, by uid. */
export class UnreadLogs {
  readonly #since = new Map<string, number>();

  get count(): number {
    return this.#since.size;
  }

  /** Since the first of them was found; 0 where there are none. */
  get lagSeconds(): number {
    const [oldest] = this.#since.values();
    return oldest === undefined ? 0 : (performance.now() - oldest) / 1000;
  }

  add(podUid: string): void {
    if (!this.#since.has(podUid)) this.#since.set(podUid, performance.now());
  }

  delete(podUid: string): void {
    this.#since.delete(podUid);
  }

  clear(): void {
    this.#since.clear();
  }
}
