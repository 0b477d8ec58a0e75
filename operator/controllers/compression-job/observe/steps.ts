import type { JobStep } from "../../../../src/resources/job-identity.ts";
import type { ObservedState } from "./observed-state.ts";
import type { WorkerPod } from "./worker-pod.ts";
import { isWorkerJob, type WorkerJob } from "./worker-job.ts";

/** The steps of a job that runs in several pods, and the one step of a job in a single pod. */
export const stepSequences: readonly (readonly JobStep[])[] = [
  ["shard", "optimize", "assemble"],
  ["work"],
];

/** The worker Job of the latest step that has one. */
export function latestWorkerJob(
  observed: Pick<ObservedState, "resource" | "settings" | "workerJobs">,
): WorkerJob | undefined {
  const workerJobs = ownedWorkerJobs(observed);
  const steps = stepSequences.flatMap((sequence) => sequence.toReversed());
  return steps
    .map((step) => workerJobs.find((workerJob) => workerJob.step === step))
    .find((workerJob) => workerJob !== undefined);
}

export function workerJobPods(
  { pods }: Pick<ObservedState, "pods">,
  { uid }: WorkerJob,
): readonly WorkerPod[] {
  return pods.filter(({ workerJobUid }) => workerJobUid === uid);
}

type Owner = Pick<ObservedState, "resource" | "settings">;

export function ownedWorkerJobs(
  observed: Owner & Pick<ObservedState, "workerJobs">,
): readonly WorkerJob[] {
  return observed.workerJobs.filter((workerJob) => isOwnedWorkerJob(workerJob, observed));
}

/** Those of the resource that have not ended, also where it owns them no longer. */
export function unendedWorkerJobs(
  observed: Owner & Pick<ObservedState, "workerJobs">,
): readonly WorkerJob[] {
  return observed.workerJobs.filter((workerJob) => {
    const isOrphan =
      workerJob.controller === undefined && isWorkerJob(workerJob, observed.settings);
    return workerJob.end === undefined && (isOrphan || isOwnedWorkerJob(workerJob, observed));
  });
}

/** Whether the operator created the Job for the resource. */
export function isOwnedWorkerJob(workerJob: WorkerJob, { resource, settings }: Owner): boolean {
  return isWorkerJob(workerJob, settings) && workerJob.controller?.uid === resource.metadata.uid;
}
