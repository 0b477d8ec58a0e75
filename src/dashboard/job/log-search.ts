import { signal } from "@preact/signals";
import type { JobLog } from "./job-log.ts";

/** Lines between two frames: a log can have a million. */
const linesInFrame = 20_000;

/** Finds the lines of a log that contain a text, in any case, also in those that come later. */
export class LogSearch {
  /** Indexes of lines, rising; `count` says when there are more. */
  readonly hits: number[] = [];
  readonly count = signal(0);
  readonly #log: JobLog;
  #wanted = "";
  #next = 0;
  #frame = 0;

  constructor(log: JobLog) {
    this.#log = log;
  }

  /** Looks for another text, from the first line on. */
  begin(text: string): void {
    this.#wanted = text.toLowerCase();
    this.#next = 0;
    this.hits.length = 0;
    this.count.value = 0;
    this.goOn();
  }

  /** Looks through the lines that it has not seen. */
  goOn(): void {
    if (this.#wanted === "" || this.#frame !== 0) return;
    const { lines } = this.#log;
    const end = Math.min(this.#next + linesInFrame, lines.length);
    for (; this.#next < end; this.#next++) {
      if (lines[this.#next]?.text.toLowerCase().includes(this.#wanted)) this.hits.push(this.#next);
    }
    this.count.value = this.hits.length;
    if (end === lines.length) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.goOn();
    });
  }
}
