import { setTimeout as delay } from "node:timers/promises";
import {
  deleteInBackground,
  removeLostPod,
} from "../../operator/controllers/compression-job/act/execute-action.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../src/kubernetes/kubernetes-error.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { nodes } from "../../test/support/cluster/test-resources.ts";
import type { NodeFault, NodeLoss } from "./plan-faults.ts";
import type { SimulatedNode } from "./simulated-node.ts";

interface LossFacts {
  /** Whether the control plane evicts its pods. */
  readonly isEvicted: boolean;
  /** Whether its kubelet does and answers nothing for a while. */
  readonly isSilent: boolean;
  /** Whether its machine is gone with all pods and logs, and a new one takes its name. */
  readonly isRemoved: boolean;
}

const lossFacts: Readonly<Record<NodeLoss, LossFacts>> = {
  evict: { isEvicted: true, isSilent: false, isRemoved: false },
  silence: { isEvicted: false, isSilent: true, isRemoved: false },
  stick: { isEvicted: true, isSilent: true, isRemoved: false },
  remove: { isEvicted: false, isSilent: true, isRemoved: true },
};

/** Loses a node for a while. */
export async function loseNode(
  client: KubernetesClient,
  node: SimulatedNode,
  { how, afterMs, forMs }: NodeFault,
): Promise<void> {
  const { isEvicted, isSilent, isRemoved } = lossFacts[how];
  await delay(afterMs);
  if (isSilent) node.silence();
  if (isEvicted) await taint(client, node.name, [{ key: "lost", effect: "NoExecute" }]);
  const restore = isRemoved ? await removeNode(client, node.name) : undefined;
  await delay(forMs);
  if (isSilent) node.wake();
  await restore?.();
  if (isEvicted) await taint(client, node.name, null);
}

async function taint(
  client: KubernetesClient,
  node: string,
  taints: { key: string; effect: string }[] | null,
): Promise<void> {
  await client.patch(nodes, node, { spec: { taints } });
}

/** Removes a node and its pods at once, for which a control plane takes a minute. */
async function removeNode(client: KubernetesClient, name: string): Promise<() => Promise<void>> {
  const { metadata, status } = await client.get(nodes, name);
  const { labels = {} } = metadata;
  const { capacity = {}, allocatable = {} } = status ?? {};
  await client.delete(nodes, name, { propagationPolicy: "Background" });
  for await (const { items } of client.list(resources.pods, {
    fieldSelector: `spec.nodeName=${name}`,
  })) {
    for (const { metadata: pod, status: { phase } = {} } of items) {
      const hasEnded = phase === "Succeeded" || phase === "Failed";
      const lost = { type: "removeLostPod", name: pod.name, uid: pod.uid, node: name } as const;
      if (!hasEnded) await ignoreNotFound(removeLostPod(client, lost));
      else await deleteInBackground(client, resources.pods, { ...lost, gracePeriodSeconds: 0 });
    }
  }
  return async () => {
    await client.create(nodes, { metadata: { name, labels }, status: { capacity, allocatable } });
  };
}
