import {
  type BatchResourceStatus,
  jobStateCodes,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { cancelPatches } from "./cancel.ts";
import type { ChildPatch } from "./child-patch.ts";
import { readJobStates, type BatchJobStates } from "./job-states.ts";
import { nextBatchStatus } from "./next-batch-status.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";
import { suspendPatches, wasSuspended } from "./suspend.ts";

interface BatchDecision {
  /** Indexes of the jobs to create. */
  readonly create: readonly number[];
  /** Changes of CompressionJobs that exist. */
  readonly childPatches: readonly ChildPatch[];
  readonly status: BatchResourceStatus;
}

/**
 * What to do about a batch. Depends on nothing but the observed state: after a crash, the next
 * decision continues from there.
 */
export function decideBatch(observed: ObservedBatchState): BatchDecision {
  const { batch } = observed;
  const jobStates = readJobStates(observed);
  const childPatches = jobStates.stopping ? cancelPatches(observed) : suspendPatches(observed);
  const isSuspended = batch.spec.suspend || (wasSuspended(batch) && childPatches.length > 0);
  return {
    create: listJobsToCreate(observed, jobStates),
    childPatches,
    status: nextBatchStatus(observed, jobStates, isSuspended),
  };
}

/** The next jobs, so that no more than `spec.parallelism` are unfinished. */
function listJobsToCreate(
  { batch, nameConflicts }: ObservedBatchState,
  { states, stopping }: BatchJobStates,
): number[] {
  const { spec, status } = batch;
  if (stopping || spec.suspend || (status !== undefined && isTerminal(status.status))) return [];
  const unfinished = states.filter((state) => state === jobStateCodes.created).length;
  const freeSlots = Math.max(0, spec.parallelism - unfinished);
  return [...states.keys()]
    .filter((index) => states[index] === jobStateCodes.notCreated && !nameConflicts.has(index))
    .slice(0, freeSlots);
}
