import { resourceLabels } from "../../../../src/contract/custom-resources/resource-labels.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import { observedResources } from "../../../../src/resources/observed-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { isWorkerPod, mayRun, toWorkerPod } from "../observe/worker-pod.ts";
import { toWorkerJob } from "../observe/worker-job.ts";

/** Asks the API server, not a cache. Jobs and pods under other accounts run no workers. */
export async function areWorkersStopped(
  client: KubernetesClient,
  { jobId, settings }: Pick<ObservedState, "jobId" | "settings">,
): Promise<boolean> {
  const labelSelector = `${resourceLabels.jobId}=${jobId}`;
  for await (const { items } of client.list(observedResources.jobs, { labelSelector })) {
    const workerJobs = items.map(toWorkerJob);
    const mayGoOn = workerJobs.some(
      ({ serviceAccount, end }) => serviceAccount === settings.serviceAccount && end === undefined,
    );
    if (mayGoOn) return false;
  }
  for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
    const workers = items.filter((pod) => isWorkerPod(pod, settings));
    if (workers.some((pod) => mayRun(toWorkerPod(pod, 0)))) return false;
  }
  return true;
}
