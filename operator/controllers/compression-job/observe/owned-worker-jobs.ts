import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { ObservedState } from "./observed-state.ts";
import type { WorkerJob } from "./worker-job.ts";

type Owner = Pick<ObservedState, "resource" | "settings">;

export function ownedWorkerJobs(
  observed: Owner & Pick<ObservedState, "workerJobs">,
): readonly WorkerJob[] {
  return observed.workerJobs.filter((workerJob) => isOwnedWorkerJob(workerJob, observed));
}

/**
 * Whether the operator created the Job for the resource. Who may create Jobs writes any label and
 * owner, but an admission policy leaves Jobs under the workers' account to the operator.
 */
export function isOwnedWorkerJob(
  { controller, serviceAccount }: WorkerJob,
  { resource, settings }: Owner,
): boolean {
  return (
    controller?.kind === compressionJobs.kind &&
    controller.uid === resource.metadata.uid &&
    serviceAccount === settings.serviceAccount
  );
}
