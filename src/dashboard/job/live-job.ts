import { signal } from "@preact/signals";
import type { z } from "zod";
import type { jobDetail } from "../../contract/jobs/job.ts";
import { watchChanges, onReconnect } from "../live/service-changes.ts";
import { service } from "../session/service.ts";

export type JobDetail = z.infer<typeof jobDetail>;

/** At most so often is a job that changes asked for again, milliseconds. */
const pauseMs = 500;

/** A job that a page shows, and keeps up to date. */
export class LiveJob {
  readonly job = signal<JobDetail | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  readonly #id: string;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.#id = id;
  }

  async reload(): Promise<void> {
    try {
      this.job.value = await service.call("getJob", { params: { id: this.#id } });
      this.error.value = undefined;
    } catch (error) {
      this.error.value = error;
    }
  }

  /** Loads the job, again after each change. @returns a function that ends it */
  follow(): () => void {
    void this.reload();
    const stop = watchChanges(({ job, deletedJob }) => {
      if (job?.id === this.#id || deletedJob === this.#id)
        this.#timer ??= setTimeout(() => this.#refresh(), pauseMs);
    });
    const stopReturns = onReconnect(() => void this.reload());
    return () => {
      stop();
      stopReturns();
      clearTimeout(this.#timer);
    };
  }

  #refresh(): void {
    this.#timer = undefined;
    void this.reload();
  }
}
