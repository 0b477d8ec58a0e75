import { ignoreNotFound } from "./kubernetes-error.ts";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { resources } from "./resources.ts";

/** Whether the client's namespace is there, is being deleted, or is gone. */
export async function findNamespacePhase(
  client: KubernetesClient,
): Promise<"active" | "terminating" | "gone"> {
  const found = await ignoreNotFound(client.get(resources.namespaces, client.namespace));
  if (found === undefined) return "gone";
  return found.metadata.deletionTimestamp === undefined ? "active" : "terminating";
}
