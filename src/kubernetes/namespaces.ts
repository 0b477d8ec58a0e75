import type { KubernetesClient } from "./kubernetes-client.ts";
import { ignoreNotFound } from "./kubernetes-error.ts";
import { type KubernetesObject, resources, type Stored } from "./resources.ts";

/** Whether the client's namespace is there, is being deleted, or is gone. */
export async function findNamespacePhase(
  client: KubernetesClient,
): Promise<"active" | "terminating" | "gone"> {
  const found = await ignoreNotFound(client.get(resources.namespaces, client.namespace));
  if (found === undefined) return "gone";
  return found.metadata.deletionTimestamp === undefined ? "active" : "terminating";
}

/** The namespace of a stored object whose kind has one. */
export function requireNamespace({ metadata }: Stored<KubernetesObject>): string {
  if (metadata.namespace !== undefined) return metadata.namespace;
  throw new TypeError(`The object "${metadata.name}" has no namespace`);
}
