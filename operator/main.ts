import { hostname } from "node:os";
import type { z } from "zod";
import { builtinTargets } from "../src/contract/jobs/target.ts";
import type { ConfiguredTarget } from "../src/contract/custom-resources/target-pod.ts";
import { createRuntimeMetrics, type RuntimeMetrics } from "../src/controller-runtime/metrics.ts";
import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { jsonLog, type Log } from "../src/log/json-log.ts";
import { surviveLostOutput } from "../src/log/survive-lost-output.ts";
import { scopeClients, type ServedNamespaces } from "../src/resources/served-namespaces.ts";
import {
  describeStartError,
  everyAddress,
  parseEnvironment,
  StartError,
} from "../src/settings/parse-environment.ts";
import { readTargets } from "../src/settings/read-targets.ts";
import { operatorLease } from "../src/resources/permissions.ts";
import { checkTargetPods, mergePods } from "./target-pods.ts";
import type { JobSettings } from "./controllers/compression-job/observe/job-settings.ts";
import { runOperator } from "./run-operator.ts";
import { releaseFromDeletedNamespace, uninstall } from "./uninstall.ts";
import {
  type connectionSettings,
  settings as operatorSettings,
  uninstallSettings,
} from "./settings.ts";

type Settings = z.infer<typeof operatorSettings>;

async function runOperatorProcess(): Promise<void> {
  surviveLostOutput(process.stdout, process.stderr);
  const wanted = parseEnvironment(operatorSettings, process.env);
  const targets = await findTargets(wanted);
  const metrics = createRuntimeMetrics();
  const client = await connect(wanted, metrics.onCall);
  const namespaces = servedNamespaces(client, wanted);
  const log = createLog();
  const settings = jobSettings(wanted);
  await checkTargetPods(client, { targets, settings, log });
  await runOperator(
    {
      client,
      namespaces,
      targets,
      settings,
      election: election(wanted),
      health: healthAddress(wanted),
      metrics,
      log,
    },
    stopSignal(),
  );
  await releaseFromDeletedNamespace(client, scopeClients(client, namespaces), log);
  await client.close();
}

async function runUninstall([deployment]: readonly string[]): Promise<void> {
  if (deployment === undefined) throw new StartError(`The Deployment is missing\n${usage}`);
  const wanted = parseEnvironment(uninstallSettings, process.env);
  const { MOS_WORKER_SERVICE_ACCOUNT: serviceAccount } = wanted;
  const client = await connect(wanted);
  const namespaces = servedNamespaces(client, wanted);
  const log = createLog();
  const installed = { namespaces, deployment, settings: { serviceAccount } };
  await uninstall({ client, ...installed, election: election(wanted), log });
  await client.close();
}

function createLog(): Log {
  return jsonLog(process.stderr, () => new Date());
}

function servedNamespaces(
  { namespace: own }: KubernetesClient,
  { MOS_NAMESPACES: others }: z.infer<typeof connectionSettings>,
): ServedNamespaces {
  return { own, others };
}

function election({
  MOS_POD_NAME: identity = `${hostname()}-${process.pid}`,
}: z.infer<typeof connectionSettings>) {
  return { name: operatorLease, identity };
}

async function findTargets({
  MOS_TARGETS_FILE: file,
  MOS_WORKER_POD: common,
}: Settings): Promise<readonly ConfiguredTarget[]> {
  const targets: readonly ConfiguredTarget[] =
    file === undefined ? builtinTargets : await readTargets(file);
  return targets.map((target) => ({ ...target, pod: mergePods(common, target.pod) }));
}

function connect(
  {
    MOS_NAMESPACE: namespace,
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
  }: z.infer<typeof connectionSettings>,
  onCall: RuntimeMetrics["onCall"] = () => {},
): Promise<KubernetesClient> {
  const source = host === undefined ? { kubeconfig: undefined } : { host, port };
  return connectCluster(source, { namespace, userAgent: "model-optimization-operator", onCall });
}

function healthAddress({ MOS_HOST: host, MOS_HEALTH_PORT: port }: Settings) {
  return { host: host === everyAddress ? undefined : host, port };
}

function jobSettings(wanted: Settings): JobSettings {
  return {
    serviceUrl: wanted.MOS_SERVICE_URL,
    hasOwnUser: wanted.MOS_WORKER_USER === "own",
    image: wanted.MOS_WORKER_IMAGE,
    serviceAccount: wanted.MOS_WORKER_SERVICE_ACCOUNT,
    ttlSeconds: wanted.MOS_JOB_TTL_SECONDS,
    resourceTtlSeconds: wanted.MOS_RESOURCE_TTL_SECONDS,
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

/** The operator itself, and what the chart runs before it is uninstalled. */
const commands = new Map([
  [undefined, runOperatorProcess],
  ["uninstall", runUninstall],
]);

const usage = "Usage: node operator/main.ts [uninstall DEPLOYMENT]";

async function runCommand([name, ...args]: readonly string[]): Promise<void> {
  if (name === "--help" || name === "-h") return void process.stdout.write(`${usage}\n`);
  const command = commands.get(name);
  if (command === undefined) throw new StartError(`Command "${name}" is not known\n${usage}`);
  await command(args);
}

runCommand(process.argv.slice(2)).then(() => process.exit(0), exitWithError);
