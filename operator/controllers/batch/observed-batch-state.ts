import type { BatchObject, CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";

/** All that decisions about a batch are made from. */
export interface ObservedBatchState {
  readonly batch: Stored<BatchObject>;
  /** The CompressionJobs that the batch controls, by number of the job. */
  readonly children: ReadonlyMap<number, Stored<CompressionJobObject>>;
  /** Jobs that were made and whose CompressionJob somebody has deleted. */
  readonly deleted: ReadonlySet<number>;
  /** CompressionJobs with the names of jobs that belong to others. */
  readonly nameConflicts: ReadonlyMap<number, Stored<CompressionJobObject>>;
  readonly now: Date;
}
