import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs } from "../observe/owned-worker-jobs.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import type { Action, Decision } from "./decision.ts";

/** Deletes all worker Jobs that have not ended and all pods that may run; undefined without any. */
export function stopWorkers(observed: ObservedState): Decision | undefined {
  const workerJobs = ownedWorkerJobs(observed).filter(({ end }) => end === undefined);
  const pods = observed.pods.filter(mayRun);
  if (workerJobs.length === 0 && pods.length === 0) return undefined;
  return {
    actions: [...workerJobs.flatMap(deleteWorkerJobActions), ...pods.flatMap(deletePodActions)],
  };
}

/** The same for a job whose logs are still to be read: its worker Jobs end, with their pods. */
export function endWorkers(observed: ObservedState): Decision | undefined {
  const stopping = stopWorkers(observed);
  if (stopping === undefined) return undefined;
  const workerJobs = ownedWorkerJobs(observed).filter(({ end }) => end === undefined);
  const deletions = stopping.actions.filter(({ type }) => type !== "deleteWorkerJob");
  return { actions: [...workerJobs.flatMap(endWorkerJobActions), ...deletions] };
}

/** A Job that is suspended has no deadline, and no logs either. */
function endWorkerJobActions(workerJob: WorkerJob): Action[] {
  if (workerJob.suspended) return deleteWorkerJobActions(workerJob);
  return workerJob.ending || workerJob.deleting
    ? []
    : [{ type: "endWorkerJob", name: workerJob.name }];
}

function deleteWorkerJobActions({ name, uid, deleting }: WorkerJob): Action[] {
  return deleting ? [] : [{ type: "deleteWorkerJob", name, uid }];
}

/** Pods are not left to the garbage collector, which is slow where there are many. */
function deletePodActions({ name, uid, deletionDeadline }: WorkerPod): Action[] {
  return deletionDeadline === undefined ? [{ type: "deletePod", name, uid }] : [];
}
