import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after } from "node:test";
import { connectCluster } from "../../../src/kubernetes/connect-cluster.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { until } from "../until.ts";
import { openCluster, type Cluster } from "./cluster.ts";
import { startControlPlane } from "./control-plane.ts";
import { namespaces, serviceAccounts } from "./test-resources.ts";

/** Names the kubeconfig of the control plane that `npm test` started for all files. */
const sharedKubeconfigVariable = "MOS_TEST_KUBECONFIG";

let opened: Promise<Cluster> | undefined;

/**
 * The control plane that all test files of a run share; a file that is run alone gets its own, which ends with it.
 * It has no nodes: Jobs make pods, which stay Pending.
 */
export function openSharedCluster(): Promise<Cluster> {
  const kubeconfig = process.env[sharedKubeconfigVariable];
  opened ??= kubeconfig === undefined ? startControlPlane() : openCluster(kubeconfig);
  return opened;
}

/** A namespace of the shared cluster for the test, or the file, that asks; it is deleted at the end of that. */
export async function createTestNamespace(): Promise<{ cluster: Cluster; namespace: string }> {
  const cluster = await openSharedCluster();
  const namespace = `test-${randomBytes(4).toString("hex")}`;
  // A process of kubectl for each call would take longer than the call.
  const client = await connectCluster({ kubeconfig: cluster.kubeconfig }, { namespace });
  await client.create(namespaces, { metadata: { name: namespace } });
  after(async () => {
    const gone = client.delete(namespaces, namespace, { propagationPolicy: "Background" });
    await gone.catch((error: unknown) => assert(isNotFound(error), String(error)));
    await client.close();
  });
  await until("the namespace has its service account", () =>
    client.get(serviceAccounts, "default").then(
      () => true,
      () => false,
    ),
  );
  return { cluster, namespace };
}

/** Starts the control plane that the test files of this process' run share. It ends with this process. */
export async function startSharedCluster(): Promise<void> {
  const { kubeconfig } = await startControlPlane();
  process.env[sharedKubeconfigVariable] = kubeconfig;
}
