import { combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import { isTerminalAndRecorded } from "./finalizer.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import { resourceLabels } from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs } from "../observe/owned-worker-jobs.ts";

/** `spec.ttlSecondsAfterFinished`: deletes the resource so long after its end. */
export function deleteAfterTtl(observed: ObservedState): Decision {
  const { resource, now } = observed;
  const ttlSeconds = findTtlSeconds(observed);
  if (ttlSeconds === undefined || resource.metadata.deletionTimestamp !== undefined) {
    return noActions;
  }
  const expiry = jobEndTime(resource) + ttlSeconds * 1000;
  return expiry <= now ? { actions: [{ type: "deleteResource" }] } : requeueAt(expiry);
}

/** Jobs of a batch are deleted with it, where they do not say otherwise. */
function findTtlSeconds({ resource, settings }: ObservedState): number | undefined {
  const { spec, metadata } = resource;
  const isOfBatch = metadata.labels?.[resourceLabels.batchId] !== undefined;
  return spec.ttlSecondsAfterFinished ?? (isOfBatch ? undefined : settings.resourceTtlSeconds);
}

/** When a job ended that is in a terminal status, milliseconds since 1970. */
export function jobEndTime({ metadata, status }: CompressionJob): number {
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
