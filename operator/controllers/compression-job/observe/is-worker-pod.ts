import type { ObservedPod } from "../../../../src/resources/observed-resources.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import type { JobSettings } from "./job-settings.ts";

/** Whether a pod with a job's id runs a worker: others may have been given the label by anybody. */
export function isWorkerPod(
  { spec }: Stored<ObservedPod>,
  { serviceAccount }: Pick<JobSettings, "serviceAccount">,
): boolean {
  return spec?.serviceAccountName === serviceAccount;
}
