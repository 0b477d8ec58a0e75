import { signal } from "@preact/signals";
import { delay } from "../../limits/retry.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { service } from "../session/service.ts";

/** Lines after which the page may answer a person: a long log comes faster than it is read. */
const linesAtOnce = 1000;

/** The log of a job, which is read while it grows. */
export class JobLog {
  /** Lines, oldest first; `count` says when there are more. */
  readonly lines: LogLine[] = [];
  readonly count = signal(0);
  readonly error = signal<unknown>(undefined);
  readonly isComplete = signal(false);
  #frame = 0;

  /** Reads until the job has ended. @returns a function that ends it */
  follow(jobId: string): () => void {
    const stop = new AbortController();
    this.#read(jobId, stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) this.error.value = error;
    });
    return () => stop.abort();
  }

  async #read(jobId: string, ending: AbortSignal): Promise<void> {
    const after = this.lines.at(-1)?.seq ?? 0;
    for await (const line of service.followLogs(jobId, { after, signal: ending })) {
      this.lines.push(line);
      // Many lines can come between two frames, and are shown at once.
      if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#show());
      if (line.seq % linesAtOnce === 0) await delay(0, ending);
    }
    this.#show();
    this.isComplete.value = true;
  }

  #show(): void {
    this.#frame = 0;
    this.count.value = this.lines.length;
  }
}
