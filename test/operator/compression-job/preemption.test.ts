import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { workerJobManifest } from "../../../operator/controllers/compression-job/decide/worker-job-manifest.ts";
import { resourceLabels } from "../../../src/contract/custom-resources/resource-labels.ts";
import {
  type ConfiguredTarget,
  configuredTarget,
} from "../../../src/contract/custom-resources/target-pod.ts";
import { type Pod, resources, type Stored } from "../../../src/kubernetes/resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import { clusterMissing, kueueMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { startKueue } from "../../support/cluster/kueue.ts";
import { startKwok } from "../../support/cluster/kwok.ts";
import { podEndStage } from "../../support/cluster/pod-end-stage.ts";
import { until } from "../../support/until.ts";
import { startOperator } from "../start-operator.ts";
import { jobSettings, makeJob } from "./make-job.ts";
import { observeJobs, type ObservedJobs } from "./observe-jobs.ts";

const skip = clusterMissing || kueueMissing;
const namespace = "default";
const gpus = 4;

function target(name: string, count: number, fields: object) {
  const hardware = { executionProvider: "cuda", operators: "contrib", description: name };
  const gpu = { resource: "nvidia.com/gpu", count };
  return { name, ...hardware, recipe: { scheme: "int8-weight" }, gpu, ...fields };
}

const targets = [
  target("one", 1, { queue: { name: "team", priorityClass: "low" } }),
  target("two", 2, { queue: { name: "team", priorityClass: "low" } }),
  target("small", 1, { queue: { name: "small", priorityClass: "low" } }),
  target("spare", gpus, { priorityClassName: "spare" }),
  target("critical", gpus, { priorityClassName: "critical" }),
];

function queue(name: string, nvidia: number, preemption: object) {
  const quotas = { cpu: 8, memory: "16Gi", "ephemeral-storage": "64Gi", "nvidia.com/gpu": nvidia };
  const quota = Object.entries(quotas).map(([resource, nominalQuota]) => ({
    name: resource,
    nominalQuota,
  }));
  const flavors = [{ name: "default", resources: quota }];
  const resourceGroups = [{ coveredResources: Object.keys(quotas), flavors }];
  return [
    kueueObject("ClusterQueue", name, { namespaceSelector: {}, preemption, resourceGroups }),
    kueueObject("LocalQueue", name, { clusterQueue: name }),
  ];
}

function kueueObject(kind: string, name: string, spec: object) {
  return { apiVersion: "kueue.x-k8s.io/v1beta2", kind, metadata: { name }, spec };
}

function priority(kind: string, name: string, value: number) {
  const apiVersion = kind === "PriorityClass" ? "scheduling.k8s.io/v1" : "kueue.x-k8s.io/v1beta2";
  return { apiVersion, kind, metadata: { name }, value };
}

const items = [
  kueueObject("ResourceFlavor", "default", {}),
  ...queue("team", 3, { withinClusterQueue: "LowerPriority" }),
  ...queue("small", 1, {}),
  priority("WorkloadPriorityClass", "low", 10),
  priority("WorkloadPriorityClass", "high", 1000),
  priority("PriorityClass", "spare", -10),
  priority("PriorityClass", "critical", 1000),
];

let controlPlane: ControlPlane;
let cluster: ObservedJobs;
const used = new AsyncDisposableStack();
after(() => used.disposeAsync());

before(async () => {
  if (skip !== false) return;
  controlPlane = used.use(await startControlPlane());
  const endStages = [
    ...["shard", "assemble"].map((step) =>
      podEndStage({ labels: { [resourceLabels.step]: step } }),
    ),
    podEndStage({ onDeletion: true, exitCode: 11 }),
  ];
  used.use(await startKwok(controlPlane, { nodes: 1, gpusPerNode: gpus, endStages }));
  used.use(await startKueue(controlPlane));
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await controlPlane.kubectl(["create", "-f", "-"], list);
  cluster = used.use(await observeJobs(controlPlane, namespace));
  const file = join(controlPlane.folder, "targets.yaml");
  await writeFile(file, JSON.stringify({ targets }));
  const environment = { MOS_TARGETS_FILE: file };
  used.use(await startOperator({ kubeconfig: controlPlane.kubeconfig, namespace, environment }));
});

function listPods(name: string, step?: string): Stored<Pod>[] {
  return selectPods([...cluster.pods.values()], name, step);
}

function selectPods(pods: readonly Stored<Pod>[], name: string, step?: string): Stored<Pod>[] {
  return pods.filter(
    ({ metadata: { labels = {} } }) =>
      labels[resourceLabels.job] === name && labels[resourceLabels.step] === step,
  );
}

function share({ metadata }: Stored<Pod>): number {
  return Number(metadata.labels?.[resourceLabels.completionIndex]);
}

function isRunning({ metadata, status }: Stored<Pod>): boolean {
  return status?.phase === "Running" && metadata.deletionTimestamp === undefined;
}

async function untilRunning(name: string, count = 1, step?: string): Promise<Stored<Pod>[]> {
  const list = () => listPods(name, step).filter(isRunning);
  await cluster.untilTrue(() => list().length === count);
  return list();
}

async function finish(pods: readonly Stored<Pod>[]): Promise<void> {
  for (const { metadata } of pods) {
    const status = { phase: "Succeeded" };
    await cluster.client.patch<Pod>(
      resources.pods,
      metadata.name,
      { status },
      { subresource: "status" },
    );
  }
}

/** As the service reports the first worker's statuses. */
async function reportWork(name: string): Promise<void> {
  await cluster.report(name, "Pending", "Sharding", "Optimizing");
  await untilStatus(name, "Optimizing");
}

function untilStatus(name: string, status: string, reason?: string) {
  return cluster.until(
    name,
    (job) =>
      job.status.status === status && (reason === undefined || job.status.statusReason === reason),
  );
}

/** Once Kueue has found no room for its worker Job: before, it would admit another instead. */
async function untilQueued(name: string): Promise<void> {
  const workload = `{.metadata.ownerReferences[0].name} {.status.conditions[*].type}{"\\n"}`;
  const output = `jsonpath={range .items[*]}${workload}{end}`;
  const list = ["get", "workloads.kueue.x-k8s.io", "-n", namespace, "-o", output];
  await until(`Kueue knows "${name}"`, async () =>
    (await controlPlane.kubectl(list))
      .split("\n")
      .some((line) => line.startsWith(`${name}-work `) && line.includes("QuotaReserved")),
  );
}

suite("jobs are preempted", { skip }, () => {
  test("a job that Kueue preempts waits again, and goes on from its finished shares", async () => {
    await cluster.create({ name: "patient", spec: { target: "one", recipe: { parallelism: 3 } } });
    const pods = await untilRunning("patient", 3, "optimize");
    await reportWork("patient");
    const done = pods.filter((pod) => share(pod) === 0);
    await finish(done);
    const optimize = () => cluster.jobs.get("patient-optimize");
    await cluster.untilTrue(() => optimize()?.status?.completedIndexes === "0");

    const labels = { [resourceLabels.queuePriority]: "high" };
    await cluster.create({ name: "urgent", labels, spec: { target: "two" } });
    const urgent = await untilRunning("urgent");
    const waiting = await untilStatus("patient", "Pending", "waiting_for_queue");
    assert.equal(waiting.status.statusMessage, 'Waiting to be admitted again by the queue "team"');
    const live = await Array.fromAsync(cluster.client.list(resources.pods));
    const ofPatient = selectPods(
      live.flatMap(({ items }) => items),
      "patient",
      "optimize",
    );
    assert.deepEqual(ofPatient.filter(isRunning), []);
    // As the service does that knows of the interruption: what was before does not come again.
    await cluster.report("patient", "Pending");

    await finish(urgent);
    await untilStatus("urgent", "Completed");
    const resumed = await untilRunning("patient", 2, "optimize");
    assert.deepEqual(new Set(resumed.map(share)), new Set([1, 2]));
    await finish(resumed);
    const { status } = await untilStatus("patient", "Completed");
    assert.deepEqual(
      status.transitions?.map((transition) => transition.status),
      ["Sharding", "Optimizing", "Pending", "Completed"],
    );
    await cluster.untilTrue(() => optimize()?.status?.completedIndexes === "0-2");
    assert.equal(optimize()?.status?.failed ?? 0, 0);
    assert.deepEqual(
      listPods("patient", "optimize")
        .filter((pod) => share(pod) === 0)
        .map(({ metadata }) => metadata.uid),
      done.map(({ metadata }) => metadata.uid),
    );
  });

  test("Kueue admits waiting jobs by their priority, and one that is cancelled never runs", async () => {
    await cluster.create({ name: "first", spec: { target: "small" } });
    const first = await untilRunning("first");
    const labels = { [resourceLabels.queuePriority]: "high" };
    for (const name of ["later", "sooner", "dropped"]) {
      const spec = { target: "small" };
      await cluster.create({ name, spec, labels: name === "sooner" ? labels : {} });
      const { status } = await untilStatus(name, "Pending", "waiting_for_queue");
      assert.equal(status.statusMessage, 'Waiting to be admitted by the queue "small"');
      await untilQueued(name);
    }
    await cluster.change("dropped", { cancel: true });
    await untilStatus("dropped", "Cancelled");
    await finish(first);
    const sooner = await untilRunning("sooner");
    assert.equal(cluster.jobs.get("later-work")?.spec?.suspend, true);
    await finish(sooner);
    await finish(await untilRunning("later"));
    for (const name of ["first", "sooner", "later"]) await untilStatus(name, "Completed");
    assert.deepEqual(listPods("dropped"), []);
  });

  test("a job whose pod the scheduler preempts waits again until there is a node", async () => {
    await cluster.create({ name: "patient-pod", spec: { target: "spare" } });
    await untilRunning("patient-pod");
    await reportWork("patient-pod");
    await cluster.create({ name: "critical", spec: { target: "critical" } });
    const critical = await untilRunning("critical");
    const { status } = await untilStatus("patient-pod", "Pending", "unschedulable");
    assert.match(status.statusMessage ?? "", /not enough nvidia.com\/gpu free/);
    await finish(critical);
    await finish(await untilRunning("patient-pod"));
    await untilStatus("patient-pod", "Completed");
  });

  test("an API server takes every example of the guide to GPUs", async () => {
    const examples = await readExamples();
    const jobs = examples.flatMap(({ targets: configured = [] }) => configured).map(exampleJob);
    const manifests = examples.filter(({ apiVersion }) => apiVersion !== undefined);
    assert.deepEqual([jobs.length, manifests.length], [5, 7]);
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: [...jobs, ...manifests] });
    const flags = ["--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-"];
    await controlPlane.kubectl(["create", ...flags], list);
  });
});

const example = z.looseObject({
  apiVersion: z.string().optional(),
  targets: z.array(configuredTarget).optional(),
});

/** Every YAML document of the guide. */
async function readExamples(): Promise<z.infer<typeof example>[]> {
  const guide = await readFile(join(import.meta.dirname, "../../../docs/gpus.md"), "utf8");
  const blocks = Array.from(guide.matchAll(/```yaml\n(.*?)```/gs), ([, text = ""]) => text);
  return blocks.flatMap((text) =>
    parseAllDocuments(text).map((document) => example.parse(document.toJS())),
  );
}

/** The worker Job of a job for the target. */
function exampleJob(configured: ConfiguredTarget) {
  const resource = makeJob({ metadata: { name: configured.name } });
  const work = { resource, jobId: resolveJobId(resource), step: "work" } as const;
  const plan = { ...work, target: configured, parallelism: 1, deadlineSeconds: 600 };
  return { apiVersion: "batch/v1", kind: "Job", ...workerJobManifest(plan, jobSettings) };
}
