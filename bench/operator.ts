import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { recordFinalizer, resourceLabels } from "../src/contract/resource-labels.ts";
import { newId } from "../src/contract/id.ts";
import { maxAttempts } from "../src/contract/limits.ts";
import { type CompressionJobObject, compressionJobs } from "../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { createReflector } from "../src/kubernetes/reflector.ts";
import {
  type KubernetesJob,
  type KubernetesObject,
  resources,
  type ResourceType,
  type Stored,
} from "../src/kubernetes/resources.ts";
import { startControlPlane } from "../test/support/cluster/control-plane.ts";
import { startKwok } from "../test/support/cluster/kwok.ts";
import { type MeasuredProcess, startMeasuredProcess } from "./operator/measured-process.ts";
import { sumMetric } from "./operator/sum-metric.ts";
import { limitRow, reportBench } from "./result.ts";
import { workerOutput } from "./worker-output.ts";

/**
 * Jobs that are submitted at once, in rounds, beside as many bare Kubernetes Jobs. Every pod asks for
 * a GPU, finds a free one on a simulated node, and ends as soon as it runs.
 */
const [, count = "2000", rounds = "4"] = process.argv.slice(2);
const jobs = Number(count);
/** Jobs of the same kind before each measurement: a program is slow until its code is compiled. */
const warmUpJobs = 100;
const nodes = 250;
const submissionsAtOnce = 20;
const gpu = { resource: "nvidia.com/gpu", count: 1 };
const target = {
  name: "gpu",
  description: "Simulated GPUs.",
  executionProvider: "cuda",
  operators: "contrib",
  recipe: {},
  gpu,
};

await using controlPlane = await startControlPlane({ loadRun: true });
await using _nodes = await startKwok(controlPlane, {
  nodes,
  gpusPerNode: 8,
  logLines: workerOutput(["A worker's only line"]),
});

await measureOurs("compiled", { isRecorded: true, count: warmUpJobs });
const recorded = await measureOurs("recorded", { isRecorded: true });
const { ours, bare } = await measureRounds(Number(rounds), recorded.pod);
await reportBench("operator", [
  {
    what: `${jobs} jobs at once, from the first submission to the last end, over ${rounds} rounds`,
    unit: "jobs/s",
    ours,
    peer: bare,
    bar: "ours >= 0.8 x bare batch/v1 Jobs",
    met: ours >= 0.8 * bare,
  },
  {
    what: "the same, until the service has read every pod's log and its finalizer is gone",
    unit: "jobs/s",
    ours: jobs / recorded.seconds,
    peer: bare,
    bar: "none",
    met: null,
  },
  limitRow("API writes a job, operator and service together", "", recorded.writes, 6),
  limitRow(
    `peak memory of the operator, ${warmUpJobs + jobs} jobs and pods`,
    "MB",
    recorded.operatorBytes / 1e6,
    150,
  ),
]);

/** Rates over all rounds, whose order alternates: a machine's speed changes over minutes. */
async function measureRounds(
  rounds: number,
  pod: PodSpec,
): Promise<{ ours: number; bare: number }> {
  const seconds = { ours: 0, bare: 0 };
  const measures = {
    ours: async (round: number) => (await measureOurs(`ours-${round}`)).seconds,
    bare: (round: number) => measureBareJobs(`bare-${round}`, pod),
  };
  for (let round = 1; round <= rounds; round++) {
    const order = round % 2 === 1 ? (["bare", "ours"] as const) : (["ours", "bare"] as const);
    for (const who of order) {
      const elapsed = await measures[who](round);
      seconds[who] += elapsed;
      console.log(`Round ${round}, ${who}: ${(jobs / elapsed).toFixed(1)} jobs/s`);
    }
  }
  return { ours: (jobs * rounds) / seconds.ours, bare: (jobs * rounds) / seconds.bare };
}

/**
 * Kubernetes Jobs with the same pods and no operator. The namespace has a name of its own: in one
 * that is created again the API server checks each write.
 */
async function measureBareJobs(namespace: string, pod: PodSpec): Promise<number> {
  const client = await connectNamespace(namespace);
  const spec = { backoffLimit: maxAttempts - 1, template: { spec: pod } };
  let created = 0;
  const load: Load<KubernetesJob> = {
    make: () => ({ metadata: { name: `job-${++created}` }, spec }),
    isDone: ({ status }) =>
      status?.conditions?.some((each) => each.type === "Complete" && each.status === "True") ??
      false,
  };
  await measureSeconds(client, resources.jobs, warmUpJobs, load);
  const seconds = await measureSeconds(client, resources.jobs, jobs, load);
  await client.close();
  await removeNamespace(namespace);
  return seconds;
}

async function findWorkerPodSpec(client: KubernetesClient): Promise<PodSpec> {
  for await (const { items } of client.list(resources.jobs, { limit: 1 })) {
    const spec = items[0]?.spec?.template.spec;
    if (spec !== undefined) return spec;
  }
  throw new Error("The operator has created no Job");
}

interface MeasureOptions {
  /** Whether a service runs too, which records the events from the pods' logs. */
  readonly isRecorded?: boolean;
  readonly count?: number;
}

async function measureOurs(
  namespace: string,
  { isRecorded = false, count = jobs }: MeasureOptions = {},
) {
  const client = await connectNamespace(namespace);
  await using stack = new AsyncDisposableStack();
  const processOptions = { cluster: controlPlane, namespace, targets: [target] };
  if (isRecorded) stack.use(await startMeasuredProcess("service", processOptions));
  const operator = stack.use(await startMeasuredProcess("operator", processOptions));
  const load: Load<CompressionJobObject> = {
    make: makeServiceJob,
    isDone: ({ status, metadata }) =>
      status?.status === "Completed" &&
      !(isRecorded && metadata.finalizers?.includes(recordFinalizer)),
  };
  await measureSeconds(client, compressionJobs, warmUpJobs, load);
  const before = await countApiWrites(operator);
  const seconds = await measureSeconds(client, compressionJobs, count, load);
  const writes = ((await countApiWrites(operator)) - before) / count;
  const pod = await findWorkerPodSpec(client);
  if (!isRecorded) await removeFinalizers(client);
  await client.close();
  const operatorBytes = await operator.peakBytes();
  await stack.disposeAsync();
  await removeNamespace(namespace);
  return { seconds, pod, writes, operatorBytes };
}

function makeServiceJob(): Named<CompressionJobObject> {
  const id = newId("job", new Date());
  return {
    metadata: {
      name: id,
      labels: { [resourceLabels.jobId]: id },
      finalizers: [recordFinalizer],
    },
    spec: {
      kind: "compress",
      model: { source: "https://models.example/model.onnx" },
      target: target.name,
      dryRun: false,
      cancel: false,
      suspend: false,
    },
  };
}

/** No service records these jobs. */
async function removeFinalizers(client: KubernetesClient): Promise<void> {
  for await (const { items } of client.list(compressionJobs)) {
    for (const { metadata } of items)
      await client.patch(compressionJobs, metadata.name, { metadata: { finalizers: null } });
  }
}

async function removeNamespace(namespace: string): Promise<void> {
  await controlPlane.kubectl(["delete", "namespace", namespace, "--wait=true", "--timeout=300s"]);
}

async function connectNamespace(namespace: string): Promise<KubernetesClient> {
  await controlPlane.kubectl(["create", "namespace", namespace]);
  await controlPlane.kubectl([
    "create",
    "serviceaccount",
    "model-optimization-worker",
    `--namespace=${namespace}`,
  ]);
  return connectCluster({ kubeconfig: controlPlane.kubeconfig }, { namespace });
}

/** Writes so far: all of CompressionJobs and their statuses, and the operator's of the rest. */
async function countApiWrites(operator: MeasuredProcess): Promise<number> {
  const apiServerMetrics = await controlPlane.kubectl(["get", "--raw", "/metrics"]);
  const ofOurKinds = sumMetric(apiServerMetrics, "apiserver_request_total", {
    group: /^modeloptimization\.dev$/,
    verb: /^(POST|PUT|PATCH|APPLY|DELETE)$/,
    code: /^2/,
  });
  const others = sumMetric(await operator.metrics(), "mos_kubernetes_call_seconds_count", {
    verb: /^(create|update|patch|apply|delete)$/,
    resource: /^(jobs|pods|events)$/,
  });
  return ofOurKinds + others;
}

type PodSpec = NonNullable<NonNullable<KubernetesJob["spec"]>["template"]["spec"]>;

interface Load<T extends KubernetesObject> {
  readonly make: () => Named<T>;
  readonly isDone: (object: Stored<T>) => boolean;
}

type Named<T> = T & { readonly metadata: { readonly name: string } };

/** From the first submission of so many until the last one is done. */
async function measureSeconds<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  count: number,
  { make, isDone }: Load<T>,
): Promise<number> {
  const objects = Array.from({ length: count }, make);
  const open = new Set(objects.map(({ metadata }) => metadata.name));
  const allDone = Promise.withResolvers<void>();
  const countIfDone = (object: Stored<T>) => {
    if (!isDone(object) || !open.delete(object.metadata.name)) return;
    if (open.size % 200 === 0)
      process.stdout.write(`${type.plural}: ${count - open.size} of ${count}\n`);
    if (open.size === 0) allDone.resolve();
  };
  const reflector = createReflector({
    client,
    type,
    onAdded: countIfDone,
    onUpdated: countIfDone,
    onError: allDone.reject,
  });
  await reflector.synced;
  const start = performance.now();
  const waiting = objects.values();
  await Promise.all(
    Array.from({ length: submissionsAtOnce }, async () => {
      for (const object of waiting) await client.create(type, object);
    }),
  );
  await allDone.promise;
  const seconds = (performance.now() - start) / 1000;
  await reflector.stop();
  return seconds;
}
