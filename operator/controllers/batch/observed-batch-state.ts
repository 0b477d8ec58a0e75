import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/resources/custom-resources.ts";

/** All that a decision about a batch depends on. */
export interface ObservedBatchState {
  readonly batch: Stored<BatchObject>;
  /** The CompressionJobs that the batch controls, by index of the job. */
  readonly children: ReadonlyMap<number, Stored<CompressionJobObject>>;
  /** Jobs that were created and whose CompressionJob was deleted. */
  readonly deleted: ReadonlySet<number>;
  /** CompressionJobs of other owners with the names of jobs. */
  readonly nameConflicts: ReadonlyMap<number, Stored<CompressionJobObject>>;
  /** Why jobs could not be written at the last try. */
  readonly writeError?: string | undefined;
  /** Why the API server never takes jobs, by their index. */
  readonly denied?: ReadonlyMap<number, string> | undefined;
  readonly now: Date;
}
