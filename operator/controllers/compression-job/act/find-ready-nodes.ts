import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import { resources } from "../../../../src/kubernetes/resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** Of the nodes of a job's pods, those that are there and report to the control plane. */
export async function findReadyNodes(
  client: KubernetesClient,
  { pods }: ObservedState,
): Promise<ReadonlySet<string>> {
  const names = new Set(pods.flatMap(({ node }) => node ?? []));
  const ready = await Promise.all(
    Array.from(names, async (name) => {
      const node = await ignoreNotFound(client.get(resources.nodes, name));
      const conditions = node?.status?.conditions ?? [];
      return conditions.some(({ type, status }) => type === "Ready" && status === "True")
        ? [name]
        : [];
    }),
  );
  return new Set(ready.flat());
}
