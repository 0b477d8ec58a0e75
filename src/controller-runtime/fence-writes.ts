import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import type { Leadership } from "./leadership.ts";

/**
 * A client whose writes require the leadership. Without it they throw `NotLeaderError`, and calls
 * in progress are aborted when it is lost.
 */
export function fenceWrites(client: KubernetesClient, leadership: Leadership): KubernetesClient {
  const fenced = <T extends { readonly signal?: AbortSignal }>(options?: T) => {
    leadership.assertLeader();
    const { lost } = leadership;
    return {
      ...options,
      signal: options?.signal === undefined ? lost : AbortSignal.any([lost, options.signal]),
    };
  };
  return {
    namespace: client.namespace,
    inNamespace: (namespace) => fenceWrites(client.inNamespace(namespace), leadership),
    create: async (type, object, options) => client.create(type, object, fenced(options)),
    replace: async (type, object, options) => client.replace(type, object, fenced(options)),
    patch: async (type, name, patch, options) => client.patch(type, name, patch, fenced(options)),
    delete: async (type, name, options) =>
      client.delete(type, name, { ...options, ...fenced(options) }),
    get: (type, name, options) => client.get(type, name, options),
    list: (type, options) => client.list(type, options),
    review: (type, object, options) => client.review(type, object, options),
    watch: (type, options) => client.watch(type, options),
    openLog: (pod, options) => client.openLog(pod, options),
    close: () => client.close(),
  };
}
