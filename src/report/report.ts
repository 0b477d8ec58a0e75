import type { Batch } from "../contract/batch.ts";
import type { Job } from "../contract/job.ts";

/** What reports are made of: a batch and its jobs, in the order of the batch. */
export interface Report {
  readonly batch: Batch;
  readonly jobs: readonly Job[];
  /** Where all of it can be read. */
  readonly batchUrl: string;
}
