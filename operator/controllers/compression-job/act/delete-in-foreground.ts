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

/** Deletes an object after the objects that it owns. */
export async function deleteInForeground<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  { name, uid, gracePeriodSeconds }: Deletion,
): Promise<undefined> {
  const options: DeleteOptions = { propagationPolicy: "Foreground", uid };
  const withGrace = gracePeriodSeconds === undefined ? options : { ...options, gracePeriodSeconds };
  await ignoreNotFound(client.delete(type, name, withGrace));
}
