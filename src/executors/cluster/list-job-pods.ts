import { resourceLabels } from "../../contract/custom-resources/resource-labels.ts";
import { observedResources } from "../../resources/observed-resources.ts";
import { type ObservedWorkerPod, observedWorkerPod } from "./observed-worker-pod.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { readUnlessGone } from "./read-unless-gone.ts";

/** The pods of a job as the API server has them now: a cache may be behind. */
export async function listJobPods(
  client: KubernetesClient,
  jobId: string,
): Promise<ObservedWorkerPod[]> {
  return (await readUnlessGone(client, listPods(client, jobId))) ?? [];
}

async function listPods(client: KubernetesClient, jobId: string): Promise<ObservedWorkerPod[]> {
  const labelSelector = `${resourceLabels.jobId}=${jobId}`;
  const pods: ObservedWorkerPod[] = [];
  for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
    pods.push(...items.map(observedWorkerPod));
  }
  return pods;
}
