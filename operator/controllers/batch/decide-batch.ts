import { type BatchJobStates, readJobStates } from "./job-states.ts";
import { nextBatchStatus } from "./next-batch-status.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";
import {
  type BatchResourceStatus,
  jobStateCodes,
} from "../../../src/contract/custom-resources/batch-resource.ts";
import { conditionTypes } from "../../../src/contract/custom-resources/condition.ts";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import type { Clock } from "../../../src/controller-runtime/clock.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import {
  batches,
  type BatchObject,
  type CompressionJobObject,
} from "../../../src/resources/custom-resources.ts";
import { hasTrueCondition } from "../../../src/resources/conditions.ts";

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
  const create = listJobsToCreate(observed, jobStates);
  const writeError = create.length > 0 ? observed.writeError : undefined;
  return {
    create,
    childPatches,
    status: nextBatchStatus({ ...observed, writeError }, jobStates, isSuspended),
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

/** `spec.cancel`, or `spec.failFast` after a failure: cancels all jobs. */
function cancelPatches(observed: ObservedBatchState): ChildPatch[] {
  return listUnfinishedChildren(observed)
    .filter(({ spec }) => !spec.cancel)
    .map((child) => ({ child, spec: { cancel: true } }));
}

/** `spec.suspend`: only a batch that was suspended resumes jobs that a user suspended. */
function suspendPatches(observed: ObservedBatchState): ChildPatch[] {
  const { suspend } = observed.batch.spec;
  if (!suspend && !wasSuspended(observed.batch)) return [];
  return listUnfinishedChildren(observed)
    .filter(({ spec }) => spec.suspend !== suspend)
    .map((child) => ({ child, spec: { suspend } }));
}

/** Whether the status has the batch as suspended, or as not completely resumed. */
function wasSuspended({ status }: BatchObject): boolean {
  return hasTrueCondition(status?.conditions, conditionTypes.suspended);
}

function listUnfinishedChildren({ children }: ObservedBatchState): Stored<CompressionJobObject>[] {
  return [...children.values()].filter(
    ({ status }) => status === undefined || !isTerminal(status.status),
  );
}

/** A change of a CompressionJob of the batch. */
export interface ChildPatch {
  readonly child: Stored<CompressionJobObject>;
  readonly spec: { readonly cancel: true } | { readonly suspend: boolean };
}

interface ExpiringBatch {
  readonly client: Pick<KubernetesClient, "delete">;
  readonly batch: Stored<BatchObject>;
  readonly clock: Clock;
  /** Of batches without one of their own; undefined where they stay for good. */
  readonly resourceTtlSeconds?: number | undefined;
}

/**
 * `spec.ttlSecondsAfterFinished`: deletes the batch so long after its end, and no sooner than the
 * service has recorded its jobs, which are deleted with it. Where it is too early, the milliseconds
 * until then.
 */
export async function deleteExpiredBatch(
  { client, batch, clock, resourceTtlSeconds }: ExpiringBatch,
  { children }: Pick<ObservedBatchState, "children">,
): Promise<number | undefined> {
  const { ttlSecondsAfterFinished: ttlSeconds = resourceTtlSeconds } = batch.spec;
  const { finishedAt } = batch.status ?? {};
  if (ttlSeconds === undefined || finishedAt === undefined) return undefined;
  const waitMs = Date.parse(finishedAt) + ttlSeconds * 1_000 - clock.date().getTime();
  if (waitMs > 0) return waitMs;
  if ([...children.values()].some(isUnrecorded)) return undefined;
  const { name, uid } = batch.metadata;
  await client.delete(batches, name, { propagationPolicy: "Background", uid });
  return undefined;
}

function isUnrecorded({ metadata, status }: Stored<CompressionJobObject>): boolean {
  const isAwaited = metadata.finalizers?.includes(recordFinalizer) ?? false;
  return isAwaited && status?.report?.recorded !== true;
}
