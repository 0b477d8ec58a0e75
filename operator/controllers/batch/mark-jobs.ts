import { type JobMark, jobMarks } from "../../../src/contract/custom-resources.ts";
import { hasFailedGate } from "../../../src/contract/gate.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/kubernetes/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { BatchWorld } from "./batch-world.ts";
import { jobsOf } from "../../../src/kubernetes/child-of-batch.ts";

export interface MarkedJobs {
  /** One for each job. */
  readonly marks: readonly JobMark[];
  /** Nothing is made any more, and what is there is to be cancelled. */
  readonly stopping: boolean;
}

/**
 * What is known of each job. How a job has ended is known for good, whatever becomes of its CompressionJob: one that was
 * deleted is not made again.
 */
export function markJobs(world: BatchWorld): MarkedJobs {
  const { batch } = world;
  const seen = Array.from({ length: jobsOf(batch) }, (_, index) => markOf(world, index));
  const stopping = batch.spec.cancel || (batch.spec.failFast && seen.includes(jobMarks.failed));
  return { marks: seen.map((mark) => (stopping && mark === jobMarks.notMade ? jobMarks.cancelled : mark)), stopping };
}

/** Whether a CompressionJob belongs to an earlier batch of the same name, and will go as that has gone. */
export function isLeftover({ metadata }: Stored<CompressionJobObject>, batch: Stored<BatchObject>): boolean {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  return (
    metadata.deletionTimestamp !== undefined ||
    (controller?.kind === "Batch" && controller.name === batch.metadata.name)
  );
}

function markOf({ batch, children, gone, taken }: BatchWorld, index: number): JobMark {
  const before = markAt(batch, index);
  const child = children.get(index);
  if (child !== undefined) return markOfChild(child);
  if (gone.has(index)) return jobMarks.cancelled;
  if (before !== jobMarks.notMade) return before;
  const other = taken.get(index);
  return other === undefined || isLeftover(other, batch) ? jobMarks.notMade : jobMarks.failed;
}

/** What the batch's status says of a job. */
export function markAt({ status }: BatchObject, index: number): JobMark {
  const letter = status?.marks?.[index];
  return Object.values(jobMarks).find((mark) => mark === letter) ?? jobMarks.notMade;
}

function markOfChild({ status }: CompressionJobObject): JobMark {
  switch (status?.status) {
    case "Completed":
      return hasFailedGate(status.gates ?? []) ? jobMarks.gateFailed : jobMarks.completed;
    case "Failed":
      return jobMarks.failed;
    case "Cancelled":
      return jobMarks.cancelled;
    case "Pending":
    case "Sharding":
    case "Optimizing":
    case "Cancelling":
    case undefined:
      return jobMarks.made;
  }
}
