import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../src/contract/custom-resources/resource-labels.ts";
import { newId } from "../src/contract/id.ts";
import { maxAttempts } from "../src/contract/limits.ts";
import { type CompressionJobObject, compressionJobs } from "../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../src/kubernetes/kubernetes-client.ts";
import { type KubernetesJob, resources } from "../src/kubernetes/resources.ts";
import { startControlPlane } from "../test/support/cluster/control-plane.ts";
import { startKwok } from "../test/support/cluster/kwok.ts";
import { type MeasuredProcess, startMeasuredProcess } from "./operator/measured-process.ts";
import { type Load, measureSeconds, type Named } from "./operator/measure-seconds.ts";
import { copyFinishedJob, type FinishedJob, readFinishedJob } from "./operator/finished-job.ts";
import { sumMetric } from "./operator/sum-metric.ts";
import { limitRow, reportBench } from "./result.ts";
import { workerOutput } from "./worker-output.ts";

/**
 * Jobs that are submitted at once, in rounds, beside as many bare Kubernetes Jobs. Every pod asks for
 * a GPU, finds a free one on a simulated node, and ends as soon as it runs. The operator's memory is
 * measured beside jobs that have ended before it starts. Arguments: jobs at once, rounds.
 */
const [, count = "2000", rounds = "2"] = process.argv.slice(2);
const jobs = Number(count);
/** Jobs of the same kind before each measurement: a program is slow until its code is compiled. */
const warmUpJobs = 100;
const recordedJobs = 500;
/** That exist while the operator's memory is measured. */
const manyJobs = 10_000;
const nodes = 250;
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
const recorded = await measureOurs("recorded", { isRecorded: true, count: recordedJobs });
const { finished } = recorded;
const { ours, bare } = await measureRounds(Number(rounds), finished.workerJob);
const copies = { finished, count: manyJobs - 2 * warmUpJobs };
const many = await measureOurs("many", { copies, count: warmUpJobs });
await reportBench("operator", [
  {
    what: `${jobs} jobs at once, from the first submission to the last end, over ${rounds} rounds`,
    unit: "jobs/s",
    ours,
    peer: bare,
    bar: "ours >= 0.9 x bare batch/v1 Jobs",
    met: ours >= 0.9 * bare,
  },
  {
    what: `${recordedJobs} at once, until the service has read all logs and no finalizer is left`,
    unit: "jobs/s",
    ours: recordedJobs / recorded.seconds,
    peer: bare,
    bar: "none",
    met: null,
  },
  limitRow("API writes a job, operator and service together", "", recorded.writes, 6),
  limitRow(
    `peak memory of the operator, ${manyJobs} jobs and pods`,
    "MB",
    many.operatorBytes / 1e6,
    150,
  ),
]);

/** Rates over all rounds, whose order alternates: a machine's speed changes over minutes. */
async function measureRounds(
  rounds: number,
  workerJob: KubernetesJob,
): Promise<{ ours: number; bare: number }> {
  const seconds = { ours: 0, bare: 0 };
  const measures = {
    ours: async (round: number) => (await measureOurs(`ours-${round}`)).seconds,
    bare: (round: number) => measureBareJobs(`bare-${round}`, workerJob),
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
async function measureBareJobs(namespace: string, workerJob: KubernetesJob): Promise<number> {
  const client = await connectNamespace(namespace);
  const { spec: pod } = workerJob.spec?.template ?? {};
  const spec = { backoffLimit: maxAttempts - 1, template: { ...(pod && { spec: pod }) } };
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

interface MeasureOptions {
  /** Whether a service runs too, which records the events from the pods' logs. */
  readonly isRecorded?: boolean;
  readonly count?: number;
  /** Jobs that have ended before the operator starts. */
  readonly copies?: { readonly finished: FinishedJob; readonly count: number };
}

async function measureOurs(
  namespace: string,
  { isRecorded = false, count = jobs, copies }: MeasureOptions = {},
) {
  const client = await connectNamespace(namespace);
  if (copies !== undefined) await copyFinishedJob(client, copies.finished, copies.count);
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
  const finished = await readFinishedJob(client);
  const operatorBytes = await operator.peakBytes();
  await stack.disposeAsync();
  if (!isRecorded) await removeFinalizers(client);
  await client.close();
  // Thousands of copies take the API server minutes to delete; nothing is measured after them.
  if (copies === undefined) await removeNamespace(namespace);
  return { seconds, finished, writes, operatorBytes };
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
    for (const { metadata } of items) {
      if (metadata.finalizers === undefined) continue;
      await client.patch(compressionJobs, metadata.name, { metadata: { finalizers: null } });
    }
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
