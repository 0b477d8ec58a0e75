import { type BatchResourceStatus, jobStateCodes } from "../../../src/contract/batch-resource.ts";
import { conditionTypes } from "../../../src/contract/condition.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import type { BatchObject, CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";
import { readJobStates, type BatchJobStates } from "./job-states.ts";
import { nextBatchStatus } from "./next-batch-status.ts";

export interface BatchDecision {
  /** Numbers of the jobs to make. */
  readonly create: readonly number[];
  /** What to change in CompressionJobs that are there. */
  readonly childPatches: readonly ChildPatch[];
  readonly status: BatchResourceStatus;
}

export interface ChildPatch {
  readonly child: Stored<CompressionJobObject>;
  readonly spec: { readonly cancel: true } | { readonly suspend: boolean };
}

/** What is to be done about a batch, from what there is alone: whoever decides next goes on where this one stopped. */
export function decideBatch(observed: ObservedBatchState): BatchDecision {
  const jobStates = readJobStates(observed);
  const childPatches = jobStates.stopping ? cancelPatches(observed) : suspendPatches(observed);
  const suspended =
    observed.batch.spec.suspend || (wasSuspended(observed.batch) && childPatches.length > 0);
  return {
    create: jobsToCreate(observed, jobStates),
    childPatches,
    status: nextBatchStatus(observed, jobStates, suspended),
  };
}

/** As many of the next jobs as may be unfinished beside those that are. */
function jobsToCreate(
  { batch, nameConflicts }: ObservedBatchState,
  { states, stopping }: BatchJobStates,
): number[] {
  const { spec, status } = batch;
  if (stopping || spec.suspend || (status !== undefined && isTerminal(status.status))) return [];
  const freeSlots =
    spec.parallelism - states.filter((state) => state === jobStateCodes.created).length;
  if (freeSlots <= 0) return [];
  return states
    .flatMap((state, index) =>
      state === jobStateCodes.notCreated && !nameConflicts.has(index) ? index : [],
    )
    .slice(0, freeSlots);
}

function cancelPatches(observed: ObservedBatchState): ChildPatch[] {
  return unfinishedChildren(observed)
    .filter(({ spec }) => !spec.cancel)
    .map((child) => ({ child, spec: { cancel: true } }));
}

/** A job that somebody suspended on its own stays so unless the batch was suspended, and then resumed. */
function suspendPatches(observed: ObservedBatchState): ChildPatch[] {
  const { suspend } = observed.batch.spec;
  if (!suspend && !wasSuspended(observed.batch)) return [];
  return unfinishedChildren(observed)
    .filter(({ spec }) => spec.suspend !== suspend)
    .map((child) => ({ child, spec: { suspend } }));
}

function wasSuspended({ status }: BatchObject): boolean {
  return (
    status?.conditions?.some(
      ({ type, status: is }) => type === conditionTypes.suspended && is === "True",
    ) ?? false
  );
}

function unfinishedChildren({ children }: ObservedBatchState): Stored<CompressionJobObject>[] {
  return [...children.values()].filter(
    ({ status }) => status === undefined || !isTerminal(status.status),
  );
}
