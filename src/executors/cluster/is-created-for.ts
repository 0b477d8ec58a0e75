import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../kubernetes/kubernetes-error.ts";
import { observedResources } from "../../resources/observed-resources.ts";
import type { ObservedWorkerPod } from "./observed-worker-pod.ts";

/** Whether the Job that created the pod is there and belongs to the resource with the uid. */
export async function isCreatedFor(
  client: KubernetesClient,
  { workerJob, namespace }: ObservedWorkerPod,
  resourceUid: string,
): Promise<boolean> {
  if (workerJob === undefined) return false;
  const own = client.inNamespace(namespace);
  const live = await ignoreNotFound(own.get(observedResources.jobs, workerJob.name));
  const owner = live?.metadata.ownerReferences?.find(({ controller }) => controller);
  return live?.metadata.uid === workerJob.uid && owner?.uid === resourceUid;
}
