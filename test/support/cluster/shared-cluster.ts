import { randomBytes } from "node:crypto";
import { after } from "node:test";
import { openCluster, type Cluster } from "./cluster.ts";
import { startControlPlane } from "./control-plane.ts";

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
  await cluster.kubectl(["create", "namespace", namespace]);
  const flags = ["--wait=false", "--ignore-not-found"];
  after(() => cluster.kubectl(["delete", "namespace", namespace, ...flags]));
  await cluster.kubectl([
    "wait",
    "--for=create",
    "serviceaccount/default",
    "-n",
    namespace,
    "--timeout=60s",
  ]);
  return { cluster, namespace };
}

/** Starts the control plane that the test files of this process' run share. It ends with this process. */
export async function startSharedCluster(): Promise<void> {
  const { kubeconfig } = await startControlPlane();
  process.env[sharedKubeconfigVariable] = kubeconfig;
}
