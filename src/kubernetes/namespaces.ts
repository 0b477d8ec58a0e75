import type { KubernetesClient, ListOptions, ListPage } from "./kubernetes-client.ts";
import { ignoreNotFound, isForbidden, isNotFound } from "./kubernetes-error.ts";
import { allNamespaces } from "./object-key.ts";
import { type KubernetesObject, resources, type ResourceType, type Stored } from "./resources.ts";

/** Whether the client's namespace is there, is being deleted, or is gone. */
export async function findNamespacePhase(
  client: KubernetesClient,
): Promise<"active" | "terminating" | "gone"> {
  const found = await ignoreNotFound(client.get(resources.namespaces, client.namespace));
  if (found === undefined) return "gone";
  return found.metadata.deletionTimestamp === undefined ? "active" : "terminating";
}

/**
 * Whether a call was forbidden since the client's namespace is gone or being deleted: the Roles in it
 * go with it.
 */
export async function isOfDeletedNamespace(
  client: KubernetesClient,
  error: unknown,
): Promise<boolean> {
  if (!isForbidden(error) || client.namespace === allNamespaces) return false;
  return (await findNamespacePhase(client)) !== "active";
}

/** The pages of a list; none more where the kind or the client's namespace is gone. */
export async function* listUnlessDeleted<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  options?: ListOptions,
): AsyncGenerator<ListPage<T>, void, undefined> {
  try {
    yield* client.list(type, options);
  } catch (error) {
    if (!isNotFound(error) && !(await isOfDeletedNamespace(client, error))) throw error;
  }
}

/** The namespace of a stored object whose kind has one. */
export function requireNamespace({ metadata }: Stored<KubernetesObject>): string {
  if (metadata.namespace !== undefined) return metadata.namespace;
  throw new TypeError(`The object "${metadata.name}" has no namespace`);
}
