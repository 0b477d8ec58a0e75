interface TimedLine {
  readonly at: string;
  readonly text: string;
}

/** Bound of the disorder of lines: an older line than this before the newest does not come. */
const overlapSeconds = 1;

/** The newest lines of a log, to skip the lines that repeat when the log is opened again. */
export class RecentLines {
  /** Count of each line, by the second of its time. */
  readonly #bySecond = new Map<number, Map<string, number>>();
  #newest = -Infinity;
  #newLineCount = 0;
  /** Count of each line that is expected again. */
  #expectedRepeats = new Map<string, number>();

  get newLineCount(): number {
    return this.#newLineCount;
  }

  /** Start of the next read of the log: RFC 3339, in whole seconds. */
  get since(): string | undefined {
    if (this.#newest === -Infinity) return undefined;
    return `${new Date((this.#newest - overlapSeconds) * 1000).toISOString().slice(0, 19)}Z`;
  }

  /** To be called when the log is opened again from `since`. */
  expectRepeats(): void {
    this.#expectedRepeats = new Map();
    for (const lines of this.#bySecond.values()) {
      for (const [line, count] of lines)
        this.#expectedRepeats.set(line, (this.#expectedRepeats.get(line) ?? 0) + count);
    }
  }

  /** Records the line if it is new, and returns whether it is. */
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
