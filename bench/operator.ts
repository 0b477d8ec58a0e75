import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { managedBy, recordFinalizer, resourceLabels } from "../src/contract/custom-resources.ts";
import { newId } from "../src/contract/id.ts";
import { type CompressionJobObject, compressionJobs } from "../src/kubernetes/custom-resources.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { createReflector } from "../src/kubernetes/reflector.ts";
import {
  type Job,
  type KubernetesObject,
  resources,
  type ResourceType,
  type Stored,
} from "../src/kubernetes/resources.ts";
import { startControlPlane } from "../test/cluster/control-plane.ts";
import { startKwok } from "../test/cluster/kwok.ts";
import { startMeasuredProcess } from "./operator/measured-process.ts";
import { sumOf } from "./operator/prometheus-text.ts";
import { reportBench } from "./result.ts";

/**
 * Jobs submitted at once, so often beside as many bare Jobs; every pod asks for a GPU, finds one free on a simulated node, and ends as
 * soon as it runs.
 */
const [, count = "2000", rounds = "3"] = process.argv.slice(2);
const jobs = Number(count);
/** Before anything is measured: a control plane is slow at first. */
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
await using _nodes = await startKwok(controlPlane, { nodes, gpusPerNode: 8, logLines: workerOutput() });

const { pod } = await measureOurs({ namespace: "warm-up", jobs: warmUpJobs });
const { alone, bareRate } = await medianRound(Number(rounds));
const recorded = await measureOurs({ namespace: "recorded", jobs, isRecorded: true });
await reportBench("operator", [
  {
    what: `${jobs} jobs at once, from the first submission to the last end, the median of ${rounds} rounds`,
    unit: "jobs/s",
    ours: alone.rate,
    peer: bareRate,
    bar: "ours >= 0.8 x bare batch/v1 Jobs",
    met: alone.rate >= 0.8 * bareRate,
  },
  {
    what: "the same, until the service has read every pod's log and its finalizer is gone",
    unit: "jobs/s",
    ours: recorded.rate,
    peer: bareRate,
    bar: "none",
    met: true,
  },
  row("API writes a job, operator and service together", "", recorded.writes, 6),
  row(`peak memory of the operator, ${jobs} jobs and pods`, "MB", recorded.operatorBytes / 1e6, 150),
]);

/** Who comes first changes from round to round, since what is measured later finds a fuller control plane. */
async function medianRound(rounds: number) {
  const measured = [];
  for (let round = 1; round <= rounds; round++) {
    const bare = () => rateOfBareJobs(`bare-${round}`, pod);
    const first = round % 2 === 0 ? undefined : await bare();
    const alone = await measureOurs({ namespace: `alone-${round}`, jobs });
    const bareRate = first ?? (await bare());
    console.log(`Round ${round}: ${alone.rate.toFixed(1)} jobs/s, bare Jobs ${bareRate.toFixed(1)}/s`);
    measured.push({ alone, bareRate, ratio: alone.rate / bareRate });
  }
  const [median] = measured.toSorted((a, b) => a.ratio - b.ratio).slice(Math.floor(rounds / 2));
  if (median === undefined) throw new RangeError(`Of ${rounds} rounds there is no median`);
  return median;
}

/** What the log of a worker's pod holds: every event as a line of JSON. */
function workerOutput(): string[] {
  const events = [
    { type: "log", stream: "stdout", text: "A worker's only line" },
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  ];
  const at = new Date().toISOString();
  return events.map((event, index) => JSON.stringify({ ...event, seq: index + 1, at }));
}

function row(what: string, unit: string, value: number, limit: number) {
  return { what, unit, ours: value, peer: null, bar: `<= ${limit}`, met: value <= limit };
}

/** Jobs that somebody makes by hand for the same pods. The namespace has a new name: in one made anew the API server checks each write. */
async function rateOfBareJobs(namespace: string, pod: PodSpec): Promise<number> {
  const client = await connectNamespace(namespace);
  const spec = { backoffLimit: 2, template: { spec: pod } };
  const rate = await rateOf(client, resources.jobs, {
    jobs,
    make: (index) => ({ metadata: { name: `job-${index}` }, spec }),
    isDone: ({ status }) =>
      status?.conditions?.some((each) => each.type === "Complete" && each.status === "True") ?? false,
  });
  await client.close();
  await removeNamespace(namespace);
  return rate;
}

async function podOfAnyJob(client: KubernetesClient): Promise<PodSpec> {
  for await (const { items } of client.list(resources.jobs, { limit: 1 })) {
    const spec = items[0]?.spec?.template.spec;
    if (spec !== undefined) return spec;
  }
  throw new Error("The operator has made no Job");
}

interface OurLoad {
  readonly namespace: string;
  readonly jobs: number;
  /** With a service, which fetches from the pods' logs what no worker told it; without it the operator is alone. */
  readonly isRecorded?: boolean;
}

async function measureOurs({ namespace, jobs, isRecorded = false }: OurLoad) {
  const client = await connectNamespace(namespace);
  await using stack = new AsyncDisposableStack();
  const surroundings = { cluster: controlPlane, namespace, targets: [target] };
  if (isRecorded) stack.use(await startMeasuredProcess("service", surroundings));
  const operator = stack.use(await startMeasuredProcess("operator", surroundings));
  const written = await writesOfOurKinds();
  const rate = await rateOf(client, compressionJobs, {
    jobs,
    make: jobAsServiceMakesIt,
    isDone: ({ status, metadata }) =>
      status?.status === "Completed" && !(isRecorded && metadata.finalizers?.includes(recordFinalizer)),
  });
  const kindWrites = (await writesOfOurKinds()) - written;
  const otherWrites = sumOf(await operator.metrics(), "mos_kubernetes_call_seconds_count", {
    verb: /^(create|update|patch|apply|delete)$/,
    resource: /^(jobs|pods|events)$/,
  });
  const pod = await podOfAnyJob(client);
  if (!isRecorded) await releaseAll(client);
  await client.close();
  const operatorBytes = await operator.peakBytes();
  await stack.disposeAsync();
  await removeNamespace(namespace);
  return { rate, pod, writes: (kindWrites + otherWrites) / jobs, operatorBytes };
}

function jobAsServiceMakesIt(): CompressionJobObject {
  const id = newId("job", new Date());
  return {
    metadata: {
      name: id,
      labels: { [resourceLabels.managedBy]: managedBy, [resourceLabels.jobId]: id },
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

/** Nobody will record these jobs. */
async function releaseAll(client: KubernetesClient): Promise<void> {
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
  await controlPlane.kubectl(["create", "serviceaccount", "model-optimization-worker", `--namespace=${namespace}`]);
  return connectCluster({ kubeconfig: controlPlane.kubeconfig }, { namespace });
}

/** Writes of CompressionJobs and their statuses that the API server has taken. */
async function writesOfOurKinds(): Promise<number> {
  const text = await controlPlane.kubectl(["get", "--raw", "/metrics"]);
  return sumOf(text, "apiserver_request_total", {
    group: /^modeloptimization\.dev$/,
    verb: /^(POST|PUT|PATCH|APPLY|DELETE)$/,
    code: /^2/,
  });
}

type PodSpec = NonNullable<NonNullable<Job["spec"]>["template"]["spec"]>;

interface Load<T extends KubernetesObject> {
  readonly jobs: number;
  readonly make: (index: number) => T;
  readonly isDone: (object: Stored<T>) => boolean;
}

/** Jobs a second, from the first submission until the last one is done. */
async function rateOf<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  { jobs, make, isDone }: Load<T>,
): Promise<number> {
  const done = new Set<string>();
  const allDone = Promise.withResolvers<void>();
  const note = (object: Stored<T>) => {
    if (!isDone(object) || done.has(object.metadata.name)) return;
    done.add(object.metadata.name);
    if (done.size % 200 === 0) process.stdout.write(`${type.plural}: ${done.size} of ${jobs}\n`);
    if (done.size === jobs) allDone.resolve();
  };
  const reflector = createReflector({ client, type, onAdded: note, onUpdated: note, onError: allDone.reject });
  await reflector.synced;
  const start = performance.now();
  const indexes = Array.from({ length: jobs }, (_, index) => index).values();
  await Promise.all(
    Array.from({ length: submissionsAtOnce }, async () => {
      for (const index of indexes) await client.create(type, make(index));
    }),
  );
  await allDone.promise;
  const seconds = (performance.now() - start) / 1000;
  await reflector.stop();
  return jobs / seconds;
}
