import { join } from "node:path";
import type { Target } from "../contract/target.ts";
import type { ClusterSource } from "../kubernetes/connect-cluster.ts";
import { createLocalExecutor } from "../executors/local/local-executor.ts";
import type { Records } from "../records/open-records.ts";
import type { Executor } from "../executors/executor.ts";
import type { Log } from "../log/json-log.ts";
import type { Settings } from "./settings.ts";
import { StartError } from "../settings/start-error.ts";

interface ExecutorDependencies {
  readonly records: Records;
  readonly targets: readonly Target[];
  /** Without `/v1`. */
  readonly serviceUrl: string;
  /** What workers on this machine need of the environment. */
  readonly workerEnvironment: Readonly<Record<string, string>>;
  readonly now: () => Date;
  readonly log: Log;
}

export async function openExecutor(
  settings: Settings,
  dependencies: ExecutorDependencies,
): Promise<Executor> {
  const { records, log } = dependencies;
  const { MOS_DATA_DIR: directory } = settings;
  switch (settings.MOS_EXECUTOR) {
    case "local":
      return createLocalExecutor({
        records,
        serviceUrl: dependencies.serviceUrl,
        storageDirectory: directory,
        workDirectory: join(directory, "work"),
        ...(settings.MOS_WORKERS !== undefined && { concurrency: settings.MOS_WORKERS }),
        environment: dependencies.workerEnvironment,
        log: (message) => log("info", message),
      });
    case "cluster": {
      // A service without a cluster does without its modules.
      const { createClusterExecutor } = await import("../executors/cluster/cluster-executor.ts");
      const { connectCluster } = await import("../kubernetes/connect-cluster.ts");
      const namespace = settings.MOS_NAMESPACE;
      return createClusterExecutor({
        ...dependencies,
        client: await connectCluster(clusterSource(settings), {
          ...(namespace !== undefined && { namespace }),
        }),
        workerServiceAccount: settings.MOS_WORKER_SERVICE_ACCOUNT,
        resourceTtlSeconds: settings.MOS_RESOURCE_TTL_SECONDS,
      });
    }
  }
}

function clusterSource(settings: Settings): ClusterSource {
  const {
    MOS_KUBECONFIG: kubeconfig,
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
  } = settings;
  if (kubeconfig !== undefined) return { kubeconfig };
  if (host !== undefined && port !== undefined) return { host, port };
  throw new StartError(
    "MOS_EXECUTOR=cluster needs MOS_KUBECONFIG, the file with the access to the cluster",
  );
}
