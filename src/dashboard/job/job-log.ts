import { signal } from "@preact/signals";
import { delay } from "../../limits/retry.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { service } from "../session/service.ts";
import { onReconnect } from "../shared/connection-state.ts";

/** Work after which the page may answer a person: a long log comes faster than it is read. */
const workMs = 8;

/** The log of a job, which is read while it grows. */
export class JobLog {
  /** Lines, oldest first; `count` says when there are more. */
  readonly lines: LogLine[] = [];
  readonly count = signal(0);
  readonly error = signal<unknown>(undefined);
  readonly isComplete = signal(false);
  /** Steps of the work with the number of their lines, in the order of their first ones. */
  readonly steps = signal<ReadonlyMap<string, number>>(new Map());
  readonly #counts = new Map<string, number>();
  #frame = 0;

  /**
   * Reads until the job has ended, again once the service is back.
   * @returns a function that ends it
   */
  follow(jobId: string): () => void {
    const stop = new AbortController();
    const read = () => {
      this.error.value = undefined;
      this.#read(jobId, stop.signal).catch((error: unknown) => {
        if (!stop.signal.aborted) this.error.value = error;
      });
    };
    const stopReturns = onReconnect(() => this.error.peek() !== undefined && read());
    read();
    return () => {
      stopReturns();
      stop.abort();
    };
  }

  async #read(jobId: string, ending: AbortSignal): Promise<void> {
    const after = this.lines.at(-1)?.seq ?? 0;
    let resumed = performance.now();
    for await (const line of service.followLogs(jobId, { after, signal: ending })) {
      this.lines.push(line);
      const step = readStep(line);
      if (step !== undefined) this.#counts.set(step, (this.#counts.get(step) ?? 0) + 1);
      // Many lines can come between two frames, and are shown at once.
      if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#show());
      if (performance.now() - resumed < workMs) continue;
      await delay(0, ending);
      resumed = performance.now();
    }
    this.#show();
    this.isComplete.value = true;
  }

  #show(): void {
    this.#frame = 0;
    this.count.value = this.lines.length;
    this.steps.value = new Map(this.#counts);
  }
}

/** The step that a line is of: `[fetch] 2.33 MB` is of `fetch`. */
export function readStep({ text }: LogLine): string | undefined {
  return /^\[(\w+)\] /.exec(text)?.[1];
}
