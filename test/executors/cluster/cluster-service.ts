import { once } from "node:events";
import type { TestContext } from "node:test";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import { compressionJobs } from "../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import type { Cluster } from "../../support/cluster/cluster.ts";
import { findFreePort } from "../../support/find-free-port.ts";
import { connect } from "../../kubernetes/connect-test-cluster.ts";
import { type RunningService, startRunningService } from "../../support/running-service.ts";
import { until } from "../../support/until.ts";

export interface Namespace {
  readonly cluster: Cluster;
  readonly namespace: string;
  /** Of the service, those that a test wants otherwise. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface ClusterService extends RunningService, Namespace {
  /** The API server, as its administrator sees it. */
  readonly api: KubernetesClient;
  readonly port: number;
  readonly stop: (signal: "SIGTERM" | "SIGKILL") => Promise<void>;
  /** Starts it once more, at the same address with the same data. */
  readonly again: () => Promise<ClusterService>;
}

/** Starts the real service with a cluster for an executor, once it has read what is there. */
export async function startClusterService(
  t: Pick<TestContext, "after">,
  { cluster, namespace, settings = {} }: Namespace,
  from?: Pick<ClusterService, "directory" | "token" | "port">,
): Promise<ClusterService> {
  const port = from?.port ?? (await findFreePort());
  const environment = {
    MOS_EXECUTOR: "cluster",
    KUBECONFIG: cluster.kubeconfig,
    MOS_NAMESPACE: namespace,
    MOS_PORT: String(port),
    ...settings,
  };
  const service = await startRunningService(t, { environment, ...(from && { from }) });
  await until(
    "the service is ready",
    async () => (await fetch(new URL("/readyz", service.baseUrl))).ok,
  );
  const api = await connect({ kubeconfig: cluster.kubeconfig }, { namespace });
  const stop = async (signal: "SIGTERM" | "SIGKILL") => {
    const exit = once(service.process, "exit");
    // One that has ended already would not end again.
    if (service.process.kill(signal)) await exit;
  };
  const again = () =>
    startClusterService(t, { cluster, namespace, settings }, { ...service, port });
  return { ...service, cluster, namespace, api, port, stop, again };
}

/** How a job ended, as the service reports it in the resource, once all of it is recorded. */
export function untilRecorded(api: KubernetesClient, name: string) {
  return until(`${api.namespace}/${name} is recorded`, async () => {
    const resource = await api.get(compressionJobs, name);
    const { transitions = [], error, gates, recorded = false } = resource.status?.report ?? {};
    const end = transitions.at(-1);
    return recorded && end && { ...end, error, gates, jobId: resolveJobId(resource) };
  });
}
