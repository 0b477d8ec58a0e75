import type { ObservedBatchState } from "./observed-batch-state.ts";
import {
  type JobStateCode,
  jobStateCodes,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import { type StatusCounts, zeroCounts } from "../../../src/contract/batches/batch.ts";
import { hasFailedGate } from "../../../src/contract/jobs/gate.ts";
import type { JobStatus } from "../../../src/contract/jobs/status.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { batchJobCount } from "../../../src/resources/child-compression-job.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { describeBatchExcess } from "../../../src/contract/batches/jobs-size.ts";

export interface BatchJobStates {
  /** One for each job. */
  readonly states: readonly JobStateCode[];
  /** No more jobs are created, and those that exist are cancelled. */
  readonly stopping: boolean;
  /** Why those that were not created have failed. */
  readonly refusal: BatchRefusal | undefined;
}

/**
 * The state of each job. The end of a job is final: its CompressionJob is not created again after a
 * deletion.
 */
export function readJobStates(observed: ObservedBatchState): BatchJobStates {
  const { batch } = observed;
  const found = Array.from({ length: batchJobCount(batch) }, (_, index) =>
    jobState(observed, index),
  );
  const refusal = found.includes(jobStateCodes.notCreated) ? findBatchRefusal(batch) : undefined;
  const observedStates = found.map((state) =>
    refusal !== undefined && state === jobStateCodes.notCreated ? jobStateCodes.failed : state,
  );
  const stopping =
    batch.spec.cancel || (batch.spec.failFast && observedStates.includes(jobStateCodes.failed));
  return {
    states: observedStates.map((state) =>
      stopping && state === jobStateCodes.notCreated ? jobStateCodes.cancelled : state,
    ),
    stopping,
    refusal,
  };
}

/** Whether a CompressionJob belongs to an earlier batch of the same name, and will be deleted. */
export function isFromEarlierBatch(
  { metadata }: Stored<CompressionJobObject>,
  batch: Stored<BatchObject>,
): boolean {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  return (
    metadata.deletionTimestamp !== undefined ||
    (controller?.kind === "Batch" && controller.name === batch.metadata.name)
  );
}

function jobState(
  { batch, children, deleted, denied, nameConflicts }: ObservedBatchState,
  index: number,
): JobStateCode {
  const before = recordedJobState(batch, index);
  const child = children.get(index);
  if (child !== undefined) return childJobState(child);
  if (deleted.has(index)) return jobStateCodes.cancelled;
  if (before !== jobStateCodes.notCreated) return before;
  if (denied?.has(index) === true) return jobStateCodes.failed;
  const other = nameConflicts.get(index);
  return other === undefined || isFromEarlierBatch(other, batch)
    ? jobStateCodes.notCreated
    : jobStateCodes.failed;
}

/** The state of a job that the batch's status has. */
export function recordedJobState({ status }: BatchObject, index: number): JobStateCode {
  const letter = status?.marks?.[index];
  return Object.values(jobStateCodes).find((state) => state === letter) ?? jobStateCodes.notCreated;
}

function childJobState({ status }: CompressionJobObject): JobStateCode {
  switch (status?.status) {
    case "Completed":
      return hasFailedGate(status.report?.gates ?? [])
        ? jobStateCodes.gateFailed
        : jobStateCodes.completed;
    case "Failed":
      return jobStateCodes.failed;
    case "Cancelled":
      return jobStateCodes.cancelled;
    case "Pending":
    case "Sharding":
    case "Optimizing":
    case "Cancelling":
    case undefined:
      return jobStateCodes.created;
  }
}

type UnmadeOrEndedCode = Exclude<JobStateCode, typeof jobStateCodes.created>;

const statusByState: Readonly<Record<UnmadeOrEndedCode, JobStatus>> = {
  [jobStateCodes.notCreated]: "Pending",
  [jobStateCodes.completed]: "Completed",
  [jobStateCodes.gateFailed]: "Completed",
  [jobStateCodes.failed]: "Failed",
  [jobStateCodes.cancelled]: "Cancelled",
};

/** How many jobs have each status. */
export function countJobsByStatus(
  { children }: ObservedBatchState,
  states: readonly JobStateCode[],
): StatusCounts {
  const counts = { ...zeroCounts };
  states.forEach((state, index) => {
    const status =
      state === jobStateCodes.created
        ? (children.get(index)?.status?.status ?? "Pending")
        : statusByState[state];
    counts[status]++;
  });
  return counts;
}

export function countEndedJobs({ Completed, Failed, Cancelled }: StatusCounts): number {
  return Completed + Failed + Cancelled;
}

/** Why no job of a batch is created. */
export interface BatchRefusal {
  readonly reason: EventReason;
  readonly message: string;
}

/** A small batch can make many large CompressionJobs, for all of which the store has to have room. */
function findBatchRefusal({ spec }: BatchObject): BatchRefusal | undefined {
  const excess = describeBatchExcess(spec);
  if (excess === undefined) return undefined;
  const message = `spec.${excess.largest}: ${excess.message}; create several Batches`;
  return { reason: "BatchTooLarge", message };
}
