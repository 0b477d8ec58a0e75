import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { type Decision, requeueAt } from "./decision.ts";
import { isTerminalAndRecorded, releaseUnrecorded, removeFinalizer } from "./finalizer.ts";
import { endWorkers, stopWorkers } from "./stop-workers.ts";
import { deleteAfterTtl, jobEndTime } from "./ttl-seconds-after-finished.ts";

/** A worker whose result the service has has this long to exit. */
const workerExitMs = 30_000;

/** The Job controller has this long to end a Job whose pods have ended. */
const workerJobEndMs = 3_000;

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

/** Until when the workers that are left may end by themselves, milliseconds since 1970. */
function workersEndTime({ resource, pods, now }: ObservedState): number {
  const running = pods.filter(mayRun);
  if (running.some(({ phase }) => phase === "Pending")) return now;
  const mayBeEnding = running.length > 0 || resource.status.status === "Completed";
  return jobEndTime(resource) + (mayBeEnding ? workerExitMs : workerJobEndMs);
}
