import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { connectCluster, type PodSource } from "../../src/kubernetes/connect-cluster.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import type { ClusterCall } from "../../src/kubernetes/transport.ts";
import type { Cluster } from "../support/cluster/cluster.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";

export interface TestClient {
  readonly cluster: Cluster;
  readonly client: KubernetesClient;
  /** Every HTTP request so far. */
  readonly calls: readonly ClusterCall[];
}

/** A client in a namespace of its own; both end with the test or the file that asks. */
export async function connectTestCluster(): Promise<TestClient> {
  const { cluster, namespace } = await createTestNamespace();
  const calls: ClusterCall[] = [];
  const onCall = (call: ClusterCall) => void calls.push(call);
  const client = await connect({ kubeconfig: cluster.kubeconfig }, { namespace, onCall });
  return { cluster, client, calls };
}

/** Like `connectCluster()`; the client is closed with the test or the file that asks. */
export async function connect(
  ...[source, options]: Parameters<typeof connectCluster>
): Promise<KubernetesClient> {
  const client = await connectCluster(source, options);
  after(() => client.close());
  return client;
}

/** What a pod would have mounted to reach the API server at that port of this machine. */
export async function mountServiceAccount(
  cluster: Cluster,
  port = new URL(cluster.url).port,
): Promise<Required<PodSource>> {
  const directory = await mkdtemp(join(tmpdir(), "service-account-"));
  after(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "ca.crt"), cluster.certificateAuthority);
  await writeFile(join(directory, "token"), cluster.adminToken);
  await writeFile(join(directory, "namespace"), "default");
  return { host: "127.0.0.1", port, directory };
}
