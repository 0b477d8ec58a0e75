import { resourceLabels } from "../../../../src/contract/resource-labels.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import { observedResources } from "../../../../src/resources/observed-resources.ts";
import { toWorkerJob } from "../observe/worker-job.ts";
import { mayRun, toWorkerPod } from "../observe/worker-pod.ts";

/** Asks the API server, not a cache. */
export async function areWorkersStopped(client: KubernetesClient, jobId: string): Promise<boolean> {
  const labelSelector = `${resourceLabels.jobId}=${jobId}`;
  for await (const { items } of client.list(observedResources.jobs, { labelSelector })) {
    if (items.map(toWorkerJob).some(({ end }) => end === undefined)) return false;
  }
  for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
    if (items.some((pod) => mayRun(toWorkerPod(pod, 0)))) return false;
  }
  return true;
}
