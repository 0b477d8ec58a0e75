interface TimedLine {
  readonly at: string;
  readonly text: string;
}

/** Lines that are older than the newest by more than this may come no more, however writers and clocks disagree. */
const overlapSeconds = 1;

/** Remembers the newest lines of a log, to tell those apart that come once more when it is opened anew. */
export class RecentLines {
  /** How often each line came, by the second of its time. */
  readonly #bySecond = new Map<number, Map<string, number>>();
  #newest = -Infinity;
  #newLineCount = 0;
  /** What comes once more, unless it is older than what is remembered. */
  #expectedRepeats = new Map<string, number>();

  /** How many lines were new so far. */
  get newLineCount(): number {
    return this.#newLineCount;
  }

  /** From where the log must be read: RFC 3339, in whole seconds. */
  get since(): string | undefined {
    if (this.#newest === -Infinity) return undefined;
    return `${new Date((this.#newest - overlapSeconds) * 1000).toISOString().slice(0, 19)}Z`;
  }

  /** To be called when the log is opened anew from `since`. */
  expectRepeats(): void {
    this.#expectedRepeats = new Map();
    for (const lines of this.#bySecond.values()) {
      for (const [line, count] of lines)
        this.#expectedRepeats.set(line, (this.#expectedRepeats.get(line) ?? 0) + count);
    }
  }

  /** Whether the line is new; then it is remembered. */
  addIfNew({ at, text }: TimedLine): boolean {
    const line = `${at} ${text}`;
    const again = this.#expectedRepeats.get(line) ?? 0;
    if (again > 0) {
      this.#expectedRepeats.set(line, again - 1);
      return false;
    }
    this.#newLineCount += 1;
    const second = Math.floor(Date.parse(at) / 1000);
    if (second > this.#newest) this.#advance(second);
    const lines = this.#bySecond.get(second) ?? new Map<string, number>();
    this.#bySecond.set(second, lines.set(line, (lines.get(line) ?? 0) + 1));
    return true;
  }

  #advance(second: number): void {
    this.#newest = second;
    for (const old of this.#bySecond.keys())
      if (old < second - overlapSeconds) this.#bySecond.delete(old);
  }
}
