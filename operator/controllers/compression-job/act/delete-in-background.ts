import type {
  DeleteOptions,
  KubernetesClient,
} from "../../../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import type { KubernetesObject, ResourceType } from "../../../../src/kubernetes/resources.ts";

interface Deletion extends Pick<DeleteOptions, "gracePeriodSeconds"> {
  readonly name: string;
  readonly uid: string;
}

/**
 * Deletes an object at once. In the foreground it would wait for the garbage collector, which takes
 * minutes in a busy cluster.
 */
export async function deleteInBackground<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  { name, uid, gracePeriodSeconds }: Deletion,
): Promise<undefined> {
  const options: DeleteOptions = { propagationPolicy: "Background", uid };
  const withGrace = gracePeriodSeconds === undefined ? options : { ...options, gracePeriodSeconds };
  await ignoreNotFound(client.delete(type, name, withGrace));
}
