import type { KubernetesClient, MergePatch } from "../../../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import { type Pod, resources } from "../../../../src/kubernetes/resources.ts";
import type { Action } from "../decide/decision.ts";
import { deleteInBackground } from "./delete-in-background.ts";

type PodStatus = NonNullable<Pod["status"]>;

const reason = "NodeUnresponsive";

export async function removeLostPod(
  client: KubernetesClient,
  { name, uid, node }: Action & { type: "removeLostPod" },
): Promise<undefined> {
  const pod = await ignoreNotFound(client.get(resources.pods, name));
  if (pod?.metadata.uid !== uid) return;
  const status = lostPodStatus(pod, node);
  await client.patch(resources.pods, name, { status }, { subresource: "status" });
  await deleteInBackground(client, resources.pods, { name, uid, gracePeriodSeconds: 0 });
}

/** As the control plane marks pods of deleted nodes: to the Job it is a disruption. */
function lostPodStatus({ status }: Pod, node: string): MergePatch<PodStatus> {
  const message = `The node "${node}" did not confirm that the pod stopped`;
  const disruption = {
    type: "DisruptionTarget",
    status: "True",
    reason,
    message,
    lastTransitionTime: new Date().toISOString(),
  };
  const others = status?.conditions?.filter(({ type }) => type !== disruption.type) ?? [];
  return { phase: "Failed", reason, message, conditions: [...others, disruption] };
}
