import { signal } from "@preact/signals";
import type { Batch } from "../../contract/jobs/batch.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { watchChanges, onReconnect } from "../live/service-changes.ts";
import { service } from "../session/service.ts";

/** At most so often is a batch that changes asked for again, milliseconds. */
const pauseMs = 1000;

/** A batch that a page shows with the figures of its jobs, and keeps up to date. */
export class LiveBatch {
  readonly batch = signal<Batch | undefined>(undefined);
  readonly jobs = signal<ReadonlyMap<string, JobSummary>>(new Map());
  readonly error = signal<unknown>(undefined);
  readonly #id: string;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.#id = id;
  }

  async reload(): Promise<void> {
    try {
      this.batch.value = await service.call("getBatch", { params: { id: this.#id } });
      const jobs = await loadSummaries(this.#id);
      this.jobs.value = new Map(jobs.map((job) => [job.id, job]));
      this.error.value = undefined;
    } catch (error) {
      this.error.value = error;
    }
  }

  /** Loads the batch, again after each change. @returns a function that ends it */
  follow(): () => void {
    void this.reload();
    const stop = watchChanges(({ batch, job, deletedBatch }) => {
      const isOwn = [batch?.id, deletedBatch].includes(this.#id) || job?.batchId === this.#id;
      if (isOwn) this.#timer ??= setTimeout(() => this.#refresh(), pauseMs);
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

async function loadSummaries(batch: string): Promise<JobSummary[]> {
  const summaries: JobSummary[] = [];
  const pages = service.listPages("listJobSummaries", { query: { batch } });
  for await (const { jobs } of pages) summaries.push(...jobs);
  return summaries;
}
