import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import type { ControlPlane } from "../../support/cluster/control-plane.ts";
import { type OperatorProcess, spawnOperator } from "../../operator/start-operator.ts";
import { workerServiceAccount } from "../../support/cluster/pod-token.ts";
import { type ClusterService, type Namespace, startClusterService } from "./cluster-service.ts";
import type { StartProgram } from "./pod-program.ts";
import { ProcessNode } from "./process-node.ts";

type Owner = Pick<TestContext, "after">;

export interface Installation {
  readonly service: ClusterService;
  readonly operator: OperatorProcess;
  readonly node: ProcessNode;
}

interface InstallationOptions extends Pick<Namespace, "settings"> {
  /** Starts what runs in pods; the worker by default. */
  readonly startProgram?: StartProgram;
}

/** Service, operator and a node with real workers, in a namespace of their own; all end with the test. */
export async function startInstallation(
  t: Owner,
  controlPlane: ControlPlane,
  { settings = {}, startProgram }: InstallationOptions = {},
): Promise<Installation> {
  const namespace = `test-${randomBytes(4).toString("hex")}`;
  await controlPlane.kubectl(["create", "namespace", namespace]);
  await controlPlane.kubectl(["create", "serviceaccount", workerServiceAccount, "-n", namespace]);
  const service = await startClusterService(t, { cluster: controlPlane, namespace, settings });
  const operator = spawnStandby(t, service);
  await operator.logged("Leading");
  const node = await ProcessNode.start(controlPlane, namespace, { startProgram });
  t.after(() => node[Symbol.asyncDispose]());
  return { service, operator, node };
}

/** Starts an operator that takes over where the other has ended, as it does when the API server is away for long. */
export function spawnStandby(
  t: Owner,
  { cluster, namespace, baseUrl }: ClusterService,
  environment: Readonly<Record<string, string>> = {},
): OperatorProcess {
  const operator = spawnOperator({
    kubeconfig: cluster.kubeconfig,
    namespace,
    environment: {
      MOS_SERVICE_URL: new URL(baseUrl).origin,
      MOS_WORKER_SERVICE_ACCOUNT: workerServiceAccount,
      ...environment,
    },
  });
  t.after(() => operator[Symbol.asyncDispose]());
  return operator;
}
