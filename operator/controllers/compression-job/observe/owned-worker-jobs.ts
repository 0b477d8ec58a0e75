import { isWorkerJob, type WorkerJob } from "./worker-job.ts";
import type { ObservedState } from "./observed-state.ts";

type Owner = Pick<ObservedState, "resource" | "settings">;

export function ownedWorkerJobs(
  observed: Owner & Pick<ObservedState, "workerJobs">,
): readonly WorkerJob[] {
  return observed.workerJobs.filter((workerJob) => isOwnedWorkerJob(workerJob, observed));
}

/** Whether the operator created the Job for the resource. */
export function isOwnedWorkerJob(workerJob: WorkerJob, { resource, settings }: Owner): boolean {
  return isWorkerJob(workerJob, settings) && workerJob.controller?.uid === resource.metadata.uid;
}
