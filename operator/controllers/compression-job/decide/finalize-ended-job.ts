import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { type Decision, requeueAt } from "./decision.ts";
import { isTerminalAndRecorded, releaseUnrecorded, removeFinalizer } from "./finalizer.ts";
import { stopWorkers } from "./stop-workers.ts";
import { deleteAfterTtl, jobEndTime } from "./ttl-seconds-after-finished.ts";

/** A worker whose result the service has has this long to exit. */
const workerExitMs = 30_000;

/** Stops the workers of a job that has ended, then removes the finalizer, then the resource. */
export function finalizeEndedJob(observed: ObservedState): Decision {
  const stopping = stopWorkers(observed);
  if (stopping !== undefined) {
    return areWorkersExiting(observed)
      ? requeueAt(jobEndTime(observed.resource) + workerExitMs)
      : stopping;
  }
  if (!isTerminalAndRecorded(observed)) return releaseUnrecorded(observed);
  return removeFinalizer(observed) ?? deleteAfterTtl(observed);
}

/** Whether all workers that are left have reported their result and are about to exit. */
function areWorkersExiting({ resource, pods, now }: ObservedState): boolean {
  if (resource.status.status === "Cancelled") return false;
  if (jobEndTime(resource) + workerExitMs <= now) return false;
  return !pods.some((pod) => pod.phase === "Pending" && mayRun(pod));
}
