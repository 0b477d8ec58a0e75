import type { Action, Decision } from "./decision.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import { ownedWorkerJobs, type ObservedState } from "../observe/observed-state.ts";

/** Ends all work of the job; undefined when there is none any more. */
export function stopWorkers(observed: ObservedState): Decision | undefined {
  const workerJobs = ownedWorkerJobs(observed).filter(({ end }) => end === undefined);
  const pods = observed.pods.filter(mayRun);
  if (workerJobs.length === 0 && pods.length === 0) return undefined;
  return {
    actions: [...workerJobs.flatMap(deleteWorkerJobActions), ...pods.flatMap(deletePodActions)],
  };
}

function deleteWorkerJobActions({ name, uid, deleting }: WorkerJob): Action[] {
  return deleting ? [] : [{ type: "deleteWorkerJob", name, uid }];
}

/** Pods are not left to the garbage collector, which takes its time where there are many. */
function deletePodActions({ name, uid, deletionDeadline }: WorkerPod): Action[] {
  return deletionDeadline === undefined ? [{ type: "deletePod", name, uid }] : [];
}
