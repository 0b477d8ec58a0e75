import { hostname } from "node:os";
import { builtinTargets } from "../src/contract/target.ts";
import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { describeStartError } from "../src/settings/describe-start-error.ts";
import { parseEnvironment } from "../src/settings/parse-environment.ts";
import { readTargets } from "../src/settings/read-targets.ts";
import { runOperator } from "./run-operator.ts";
import { jsonLog } from "../src/log/json-log.ts";
import { createRuntimeMetrics } from "../src/controller-runtime/metrics.ts";
import { settings } from "./settings.ts";

async function main(): Promise<void> {
  const wanted = parseEnvironment(settings, process.env);
  const {
    MOS_NAMESPACE: namespace,
    MOS_TARGETS_FILE: targetsFile,
    KUBERNETES_SERVICE_HOST: host,
  } = wanted;
  const targets = targetsFile === undefined ? builtinTargets : await readTargets(targetsFile);
  const metrics = createRuntimeMetrics();
  const source =
    host === undefined ? { kubeconfig: undefined } : { host, port: wanted.KUBERNETES_SERVICE_PORT };
  const client = await connectCluster(source, {
    ...(namespace !== undefined && { namespace }),
    onCall: metrics.onCall,
  });
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.once("SIGINT", () => stop.abort());
  await runOperator(
    {
      client,
      targets,
      settings: {
        serviceUrl: wanted.MOS_SERVICE_URL,
        image: wanted.MOS_WORKER_IMAGE,
        imagePullPolicy: wanted.MOS_WORKER_IMAGE_PULL_POLICY,
        serviceAccount: wanted.MOS_WORKER_SERVICE_ACCOUNT,
        ...wanted.MOS_WORKER_VOLUMES,
        ttlSeconds: wanted.MOS_JOB_TTL_SECONDS,
        deadlineSeconds: wanted.MOS_DEADLINE_SECONDS,
        podStartSeconds: wanted.MOS_POD_START_SECONDS,
      },
      election: {
        name: wanted.MOS_LEASE,
        identity: wanted.MOS_POD_NAME ?? `${hostname()}-${process.pid}`,
      },
      health: { host: wanted.MOS_HEALTH_HOST, port: wanted.MOS_HEALTH_PORT },
      metrics,
      log: jsonLog(process.stderr, () => new Date()),
    },
    stop.signal,
  );
  await client.close();
}

function exitWithError(error: unknown): never {
  process.stderr.write(`${describeStartError(error)}\n`);
  process.exit(1);
}

main().then(() => process.exit(0), exitWithError);
