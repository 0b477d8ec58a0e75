import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import { batches } from "../../../../src/resources/custom-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { type Action, combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import { ownedWorkerJobs } from "../observe/steps.ts";
import { endWorkers, stopWorkers } from "./cancel.ts";
import { mayRun } from "../observe/worker-pod.ts";

/** Stops the workers of a job that has ended, then removes the finalizer, then the resource. */
export function finalizeEndedJob(observed: ObservedState): Decision {
  const isCancelled = observed.resource.status.status === "Cancelled";
  const stopping = isCancelled ? stopWorkers(observed) : endWorkers(observed);
  if (stopping !== undefined) {
    const stopAt = isCancelled ? observed.now : workersEndTime(observed);
    return observed.now < stopAt ? requeueAt(stopAt) : stopping;
  }
  if (!isTerminalAndRecorded(observed)) return releaseUnrecorded(observed);
  return removeFinalizer(observed) ?? deleteAfterTtl(observed);
}

/** A worker that has reported the end of its job has this long to exit. */
const workerExitMs = 30_000;

/** The Job controller has this long to end a Job whose pods have ended. */
const workerJobEndMs = 3_000;

/** Until when the workers that are left may end by themselves, milliseconds since 1970. */
function workersEndTime({ resource, pods, now }: ObservedState): number {
  const running = pods.filter(mayRun);
  if (running.some(({ phase }) => phase === "Pending")) return now;
  const mayBeEnding = running.length > 0 || resource.status.status === "Completed";
  return jobEndTime(resource) + (mayBeEnding ? workerExitMs : workerJobEndMs);
}

/** Keeps the resource until its logs and result are recorded. Comes before its first worker Job. */
export function addFinalizer(observed: ObservedState): readonly Action[] {
  return hasFinalizer(observed) ? [] : [{ type: "setFinalizer", present: true }];
}

/**
 * A deleted resource waits so long for the service to record it: with the time in which workers
 * stop it is gone within a minute, also without a service.
 */
const recordWaitMs = 40_000;

/** Releases the resource once its logs and result are recorded; undefined where that is done. */
function removeFinalizer(observed: ObservedState): Decision | undefined {
  if (!hasFinalizer(observed)) return undefined;
  return { actions: [{ type: "setFinalizer", present: false }, ...endEvent(observed)] };
}

/** How the job ended; its cancellation has an event by then. */
function endEvent({ resource }: ObservedState): Action[] {
  const { status, statusMessage: message = "" } = resource.status;
  if (status !== "Completed" && status !== "Failed") return [];
  return [{ type: "recordEvent", warning: status === "Failed", reason: status, message }];
}

/** Releases a deleted resource that the service does not record. */
function releaseUnrecorded(observed: ObservedState): Decision {
  const { deletionSeenAt, now } = observed;
  if (deletionSeenAt === undefined || !hasFinalizer(observed)) return noActions;
  const releaseAt = deletionSeenAt + recordWaitMs;
  return releaseAt <= now
    ? { actions: [{ type: "setFinalizer", present: false }] }
    : requeueAt(releaseAt);
}

function isTerminalAndRecorded({ resource }: ObservedState): boolean {
  const { status, report } = resource.status;
  return isTerminal(status) && report?.recorded === true;
}

function hasFinalizer({ resource }: ObservedState): boolean {
  return resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
}

/** `spec.ttlSecondsAfterFinished`: deletes the resource so long after its end. */
function deleteAfterTtl(observed: ObservedState): Decision {
  const { resource, now } = observed;
  const ttlSeconds = findTtlSeconds(observed);
  if (ttlSeconds === undefined || resource.metadata.deletionTimestamp !== undefined) {
    return noActions;
  }
  const expiry = jobEndTime(resource) + ttlSeconds * 1000;
  return expiry <= now ? { actions: [{ type: "deleteResource" }] } : requeueAt(expiry);
}

/** Jobs that a batch owns are deleted with it, where they do not say otherwise. */
function findTtlSeconds({ resource, settings }: ObservedState): number | undefined {
  const { spec, metadata } = resource;
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  const isOfBatch = owner?.kind === batches.kind;
  return spec.ttlSecondsAfterFinished ?? (isOfBatch ? undefined : settings.resourceTtlSeconds);
}

/** When a job ended that is in a terminal status, milliseconds since 1970. */
function jobEndTime({ metadata, status }: CompressionJob): number {
  return Date.parse(status.finishedAt ?? metadata.creationTimestamp);
}

/**
 * Deletes the worker Jobs of a recorded job some time after their end. Before it is recorded, they
 * show which steps are done, and their pods have the logs, however long operator and service are
 * away: Kubernetes' own `ttlSecondsAfterFinished` would cost another write to begin only then.
 */
export function deleteExpiredWorkerJobs(observed: ObservedState): Decision {
  if (!isTerminalAndRecorded(observed)) return noActions;
  const { now, settings } = observed;
  const decisions = ownedWorkerJobs(observed).map(({ name, uid, deleting, end }) => {
    if (deleting || end === undefined) return noActions;
    const expiry = end.at + settings.ttlSeconds * 1000;
    if (expiry > now) return requeueAt(expiry);
    return { actions: [{ type: "deleteWorkerJob", name, uid }] } satisfies Decision;
  });
  return combineDecisions(...decisions);
}
