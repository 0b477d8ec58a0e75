import { writeFile, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type ClusterService, startClusterService } from "../executors/cluster/cluster-service.ts";
import {
  type Fault,
  type FaultProxy,
  type ProxiedRequest,
  startFaultProxy,
} from "../operator/fault-proxy.ts";
import { type OperatorProcess, startOperator } from "../operator/start-operator.ts";
import { workerServiceAccount } from "../support/cluster/pod-token.ts";
import type { ControlPlane } from "../support/cluster/control-plane.ts";
import { findFreePort } from "../support/find-free-port.ts";
import { mountSmallDisk } from "../support/mount-small-disk.ts";
import { unlimited } from "../support/submit-until.ts";
import { type RunningPrometheus, startPrometheus } from "./prometheus.ts";

export const namespace = "monitored";
const megabyte = 2 ** 20;

type Owner = Pick<TestContext, "after">;

/** A way to the API server that a test makes bad. */
interface BreakableAccess {
  readonly proxy: FaultProxy;
  judge: (request: ProxiedRequest) => Fault;
}

/** Of the disk that the service has for its own. */
interface SmallDisk {
  /** Leaves so much that new work is refused. */
  fill(): Promise<void>;
  enlarge(): Promise<void>;
}

export interface MonitoredInstallation {
  readonly service: ClusterService;
  readonly operator: OperatorProcess;
  startOperator(): Promise<OperatorProcess>;
  readonly access: Readonly<Record<"service" | "operator", BreakableAccess>>;
  readonly disk: SmallDisk;
  readonly prometheus: RunningPrometheus;
  readonly metricsUrls: readonly string[];
}

/**
 * Service and operator without a node, which a real Prometheus scrapes. Undefined where this process
 * may not mount the service's disk.
 */
export async function startMonitoredInstallation(
  t: Owner,
  controlPlane: ControlPlane,
): Promise<MonitoredInstallation | undefined> {
  const folder = await mountSmallDisk(t, "64m");
  if (folder === undefined) return undefined;
  await controlPlane.kubectl(["create", "namespace", namespace]);
  const account = ["create", "serviceaccount", workerServiceAccount, "-n", namespace];
  await controlPlane.kubectl(account);
  const access = {
    service: await startBreakableAccess(t, controlPlane),
    operator: await startBreakableAccess(t, controlPlane),
  };
  const service = await startClusterService(t, {
    cluster: controlPlane,
    namespace,
    settings: {
      ...unlimited,
      KUBECONFIG: access.service.proxy.kubeconfig,
      MOS_DATA_DIR: join(folder, "data"),
    },
  });
  const port = await findFreePort();
  const operate = async () => {
    const operator = await startOperator({
      kubeconfig: access.operator.proxy.kubeconfig,
      namespace,
      environment: {
        MOS_SERVICE_URL: new URL(service.baseUrl).origin,
        MOS_WORKER_SERVICE_ACCOUNT: workerServiceAccount,
        MOS_HEALTH_PORT: String(port),
        MOS_POD_NAME: "operator-0",
      },
    });
    t.after(() => operator[Symbol.asyncDispose]());
    return operator;
  };
  const ports = { service: service.port, operator: port };
  return {
    service,
    operator: await operate(),
    startOperator: operate,
    access,
    disk: createSmallDisk(folder),
    prometheus: await startPrometheus(t, ports),
    metricsUrls: Object.values(ports).map((each) => `http://127.0.0.1:${each}/metrics`),
  };
}

async function startBreakableAccess(
  t: Owner,
  controlPlane: ControlPlane,
): Promise<BreakableAccess> {
  const judge = () => "none" as const;
  const proxy = await startFaultProxy(controlPlane, (request) => access.judge(request));
  const access: BreakableAccess = { proxy, judge };
  t.after(() => proxy.close());
  return access;
}

function createSmallDisk(folder: string): SmallDisk {
  const filler = join(folder, "filler");
  return {
    async fill() {
      const { bavail, bsize } = await statfs(folder);
      await writeFile(filler, Buffer.alloc(Math.max(0, bavail * bsize - 4 * megabyte)));
    },
    enlarge: () => rm(filler),
  };
}
