import { hostname } from "node:os";
import type { z } from "zod";
import { builtinTargets, type Target } from "../src/contract/target.ts";
import { createRuntimeMetrics } from "../src/controller-runtime/metrics.ts";
import { type ClusterSource, connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { jsonLog } from "../src/log/json-log.ts";
import { describeStartError } from "../src/settings/describe-start-error.ts";
import { parseEnvironment } from "../src/settings/parse-environment.ts";
import { readTargets } from "../src/settings/read-targets.ts";
import type { JobSettings } from "./controllers/compression-job/observe/job-settings.ts";
import { runOperator } from "./run-operator.ts";
import { settings } from "./settings.ts";

type Settings = z.infer<typeof settings>;

async function runOperatorProcess(): Promise<void> {
  const wanted = parseEnvironment(settings, process.env);
  const targets = await findTargets(wanted);
  const metrics = createRuntimeMetrics();
  const { MOS_NAMESPACE: namespace } = wanted;
  const { onCall } = metrics;
  const client = await connectCluster(apiServerSource(wanted), { namespace, onCall });
  await runOperator(
    {
      client,
      targets,
      settings: jobSettings(wanted),
      election: {
        name: wanted.MOS_LEASE,
        identity: wanted.MOS_POD_NAME ?? `${hostname()}-${process.pid}`,
      },
      health: { host: wanted.MOS_HEALTH_HOST, port: wanted.MOS_HEALTH_PORT },
      metrics,
      log: jsonLog(process.stderr, () => new Date()),
    },
    stopSignal(),
  );
  await client.close();
}

async function findTargets({ MOS_TARGETS_FILE: file }: Settings): Promise<readonly Target[]> {
  return file === undefined ? builtinTargets : readTargets(file);
}

function apiServerSource(wanted: Settings): ClusterSource {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = wanted;
  return host === undefined ? { kubeconfig: undefined } : { host, port };
}

function jobSettings(wanted: Settings): JobSettings {
  return {
    serviceUrl: wanted.MOS_SERVICE_URL,
    image: wanted.MOS_WORKER_IMAGE,
    imagePullPolicy: wanted.MOS_WORKER_IMAGE_PULL_POLICY,
    serviceAccount: wanted.MOS_WORKER_SERVICE_ACCOUNT,
    ...wanted.MOS_WORKER_VOLUMES,
    ttlSeconds: wanted.MOS_JOB_TTL_SECONDS,
    deadlineSeconds: wanted.MOS_DEADLINE_SECONDS,
    podStartSeconds: wanted.MOS_POD_START_SECONDS,
  };
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.once("SIGINT", () => stop.abort());
  return stop.signal;
}

function exitWithError(error: unknown): never {
  process.stderr.write(`${describeStartError(error)}\n`);
  process.exit(1);
}

runOperatorProcess().then(() => process.exit(0), exitWithError);
