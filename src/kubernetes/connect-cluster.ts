import { ClusterClient } from "./cluster-client.ts";
import { readKubeconfigAccess, type KubeconfigSource } from "./read-kubeconfig-access.ts";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { readPodAccess, type PodSource } from "./read-pod-access.ts";
import { type ClusterCall, createTransport } from "./transport.ts";

export type ClusterSource = PodSource | KubeconfigSource;

interface ConnectOptions {
  /** By default the pod's namespace, or that of the kubeconfig's context. */
  readonly namespace?: string | undefined;
  /** Names the component in the API server's audit log, and as the manager of its fields. */
  readonly userAgent?: string;
  /** Called after every HTTP request. */
  readonly onCall?: (call: ClusterCall) => void;
}

/** Reads the credentials. The first call opens the connection. */
export async function connectCluster(
  source: ClusterSource,
  options: ConnectOptions = {},
): Promise<KubernetesClient> {
  const access = await ("host" in source ? readPodAccess(source) : readKubeconfigAccess(source));
  const { userAgent = "model-optimization", onCall = () => {} } = options;
  const transport = createTransport(access, { userAgent, onCall });
  return new ClusterClient(transport, options.namespace ?? access.namespace);
}
