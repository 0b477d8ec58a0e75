import type { RequestListener } from "node:http";
import { join } from "node:path";
import type { Registry } from "prom-client";
import type { Target } from "../contract/jobs/target.ts";
import type { Executor } from "../executors/executor.ts";
import { createLocalExecutor } from "../executors/local/local-executor.ts";
import type { ClusterSource } from "../kubernetes/connect-cluster.ts";
import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import { findStoredUpload } from "../storage/partial-uploads.ts";
import { StartError } from "../settings/parse-environment.ts";
import { listSecretFiles } from "./settings/read-credentials.ts";
import type { Settings } from "./settings/settings.ts";

interface ExecutorDependencies {
  readonly records: Records;
  readonly blobs: BlobStore;
  readonly targets: readonly Target[];
  /** Without `/v1`. */
  readonly serviceUrl: string;
  /** Answers the requests of workers on this machine that have no network. */
  readonly answerWorker: RequestListener;
  /** Environment variables of workers on this machine. */
  readonly workerEnvironment: Readonly<Record<string, string>>;
  /** Of the process's metrics. */
  readonly registry: Registry;
  readonly now: () => Date;
  readonly log: Log;
}

/** @throws StartError */
export async function openExecutor(
  settings: Settings,
  dependencies: ExecutorDependencies,
): Promise<Executor> {
  switch (settings.MOS_EXECUTOR) {
    case "local":
      return openLocalExecutor(settings, dependencies);
    case "cluster":
      return openClusterExecutor(settings, dependencies);
  }
}

async function openLocalExecutor(
  settings: Settings,
  { records, blobs, serviceUrl, answerWorker, workerEnvironment, log }: ExecutorDependencies,
): Promise<Executor> {
  const { MOS_DATA_DIR: directory } = settings;
  return createLocalExecutor({
    records,
    serviceUrl,
    answerWorker,
    blobs,
    containment: {
      dataDirectory: directory,
      allowedRoots: settings.MOS_ALLOWED_ROOTS,
      secretFiles: listSecretFiles(settings),
    },
    workDirectory: join(directory, "work"),
    concurrency: settings.MOS_WORKERS,
    deadlineSeconds: settings.MOS_DEADLINE_SECONDS,
    environment: workerEnvironment,
    log: (message) => log("info", message),
  });
}

/** Loads the modules of the cluster only here: a service without one starts faster. */
async function openClusterExecutor(
  settings: Settings,
  { records, blobs, targets, registry, now, log }: ExecutorDependencies,
): Promise<Executor> {
  const { createRuntimeMetrics } = await import("../controller-runtime/metrics.ts");
  const { createClusterExecutor } = await import("../executors/cluster/cluster-executor.ts");
  const { connectCluster } = await import("../kubernetes/connect-cluster.ts");
  const metrics = createRuntimeMetrics(registry);
  const { onCall } = metrics;
  const { MOS_NAMESPACE: namespace, MOS_NAMESPACES: others } = settings;
  const connection = { namespace, userAgent: "model-optimization-service", onCall };
  const client = await connectCluster(clusterSource(settings), connection);
  return createClusterExecutor({
    records,
    client,
    namespaces: { own: client.namespace, others },
    findUpload: (sha256) => findStoredUpload(blobs, sha256),
    acceptsServiceAccountTokens: settings.MOS_SERVICE_ACCOUNT_CALLERS,
    metrics,
    targets,
    workerServiceAccount: settings.MOS_WORKER_SERVICE_ACCOUNT,
    resourceTtlSeconds: settings.MOS_RESOURCE_TTL_SECONDS,
    now,
    log,
  });
}

/** The kubeconfig that the settings name, or the service account of the pod. */
function clusterSource(settings: Settings): ClusterSource {
  const {
    KUBECONFIG: kubeconfig,
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
  } = settings;
  if (kubeconfig !== undefined) return { kubeconfig };
  if (host !== undefined && port !== undefined) return { host, port };
  throw new StartError(
    "MOS_EXECUTOR=cluster needs KUBECONFIG, the file with the access to the cluster",
  );
}
