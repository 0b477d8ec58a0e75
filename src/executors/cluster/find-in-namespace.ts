import type { WatchedResource } from "../../controller-runtime/watch-resource.ts";
import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import { byId } from "./sync-context.ts";

/** The resource of a job or batch: another namespace may have one with a copy of its id. */
export function findInNamespace<T extends KubernetesObject>(
  { cache }: Pick<WatchedResource<T>, "cache">,
  id: string,
  namespace: string,
): Stored<T> | undefined {
  return cache.byIndex(byId, id).find(({ metadata }) => metadata.namespace === namespace);
}
