import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { JobSettings } from "./job-settings.ts";
import type { WorkerJob } from "./worker-job.ts";

/**
 * Whether an operator of this installation created the Job. Who may create Jobs writes any label
 * and owner, but an admission policy leaves Jobs under the workers' account to the operator.
 */
export function isWorkerJob(
  { controller, serviceAccount }: WorkerJob,
  settings: Pick<JobSettings, "serviceAccount">,
): boolean {
  return controller?.kind === compressionJobs.kind && serviceAccount === settings.serviceAccount;
}
