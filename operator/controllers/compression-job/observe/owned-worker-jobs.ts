import type { ObservedState } from "./observed-state.ts";
import type { WorkerJob } from "./worker-job.ts";

export function ownedWorkerJobs(
  observed: Pick<ObservedState, "resource" | "jobId" | "workerJobs">,
): readonly WorkerJob[] {
  return observed.workerJobs.filter((workerJob) => isOwnedWorkerJob(workerJob, observed));
}

/** Whether the resource is the controller; a Job without one is owned if it has the job's id. */
export function isOwnedWorkerJob(
  workerJob: WorkerJob,
  { resource, jobId }: Pick<ObservedState, "resource" | "jobId">,
): boolean {
  const { controller } = workerJob;
  return controller === undefined
    ? workerJob.jobId === jobId
    : controller.uid === resource.metadata.uid;
}
