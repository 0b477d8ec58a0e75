import { objectKey } from "../../../../src/kubernetes/object-key.ts";
import type { KubernetesObject, Stored } from "../../../../src/kubernetes/resources.ts";

/** Index of caches by the id of the job, in its namespace: another may have a copy of it. */
export const jobIdIndex = "job-id";

export function jobIdKey(
  { namespace = "" }: Stored<KubernetesObject>["metadata"],
  id: string,
): string {
  return objectKey({ namespace, name: id });
}
