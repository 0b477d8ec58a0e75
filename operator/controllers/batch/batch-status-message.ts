import type { StatusCounts } from "../../../src/contract/jobs/batch.ts";
import type { BatchStatus } from "../../../src/contract/jobs/status.ts";
import { batchJobCount } from "../../../src/resources/child-compression-job.ts";
import { countEndedJobs } from "./job-counts.ts";
import { isFromEarlierBatch } from "./job-states.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

/** Figures of a batch, and the status that follows from them. */
export interface BatchSituation {
  readonly status: BatchStatus;
  readonly counts: StatusCounts;
  readonly gatesFailed: number;
  readonly stopping: boolean;
}

/** What people want to know beside the figures. */
export function batchStatusMessage(
  observed: ObservedBatchState,
  situation: BatchSituation,
): string | undefined {
  const { counts, gatesFailed } = situation;
  const all = `${batchJobCount(observed.batch)} jobs`;
  switch (situation.status) {
    case "Completed":
      return gatesFailed > 0 ? `${gatesFailed} of ${all} have a gate that failed` : undefined;
    case "Failed":
      return `${counts.Failed} of ${all} failed`;
    case "Cancelled":
      return `${counts.Cancelled} of ${all} were cancelled`;
    case "Cancelling":
      return `${countUnfinished(observed, counts)} of ${all} have still to stop`;
    case "Pending":
    case "Running":
      return unfinishedMessage(observed, situation);
  }
}

function unfinishedMessage(
  observed: ObservedBatchState,
  { status, counts, stopping }: BatchSituation,
): string | undefined {
  const { batch, children } = observed;
  const unfinished = `${countUnfinished(observed, counts)} of ${batchJobCount(batch)} jobs`;
  if (stopping) return `A job failed: ${unfinished} are being cancelled`;
  if (batch.spec.suspend) return `Suspended: ${unfinished} wait`;
  const leftover = findLeftover(observed);
  if (leftover !== undefined) {
    return `Waits until CompressionJob "${leftover}" of an earlier Batch of this name is deleted`;
  }
  if (status === "Running") return undefined;
  return [...children.values()].find((child) => child.status?.statusMessage)?.status?.statusMessage;
}

function countUnfinished({ batch }: ObservedBatchState, counts: StatusCounts): number {
  return batchJobCount(batch) - countEndedJobs(counts);
}

function findLeftover({ batch, nameConflicts }: ObservedBatchState): string | undefined {
  const leftover = [...nameConflicts.values()].find((other) => isFromEarlierBatch(other, batch));
  return leftover?.metadata.name;
}
