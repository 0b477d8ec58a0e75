import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import type { ResourceReference } from "../../records/resource-reference.ts";

/** Whether a record is linked to this resource, or to none yet. */
export function isLinkedTo(
  { uid }: Pick<ResourceReference, "uid">,
  { metadata }: Stored<KubernetesObject>,
): boolean {
  return uid === null || uid === metadata.uid;
}
