import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { isAlreadyExists } from "../../kubernetes/kubernetes-error.ts";
import type { KubernetesObject, ResourceType, Stored } from "../../kubernetes/resources.ts";

/** Creates the object, or returns the one that an earlier attempt created without a response. */
export async function createOrGet<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  object: T & { readonly metadata: { readonly name: string } },
): Promise<Stored<T>> {
  try {
    return await client.create(type, object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(type, object.metadata.name);
  }
}
