import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { CompressionJob } from "../../../src/contract/custom-resources/compression-job.ts";
import { conditionTypes } from "../../../src/contract/custom-resources/condition.ts";
import { recordFinalizer } from "../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal, type JobStatus } from "../../../src/contract/jobs/status.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import {
  type KubernetesJob,
  type Pod,
  resources,
  type Stored,
} from "../../../src/kubernetes/resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { startKwok } from "../../support/cluster/kwok.ts";
import { podEndStage, type PodEndStageOptions } from "../../support/cluster/pod-end-stage.ts";
import { until } from "../../support/until.ts";
import { observeJobs, type ObservedJobs } from "./observe-jobs.ts";
import { podStuck } from "./pod-stuck.ts";
import { startOperator } from "../start-operator.ts";

const skip = clusterMissing;
const namespace = "default";
const hour = 3_600_000;

/** How the pods of a job with this name end; those of others succeed. */
const ends: Readonly<Record<string, Omit<PodEndStageOptions, "labels">>> = {
  endless: { delayMs: hour },
  attacked: { delayMs: hour },
  "endless-forged": { delayMs: hour },
  abandoned: { delayMs: hour },
  leaving: { delayMs: 3_000 },
  paused: { delayMs: hour },
  "pod-deleted": { delayMs: hour },
  "job-deleted": { delayMs: hour },
  refused: {
    exitCode: 10,
    message: JSON.stringify({
      outcome: "Failed",
      error: { code: "model_invalid", message: "No graph" },
      lastSeq: 9,
    }),
  },
  reported: { message: JSON.stringify({ outcome: "Completed", lastSeq: 12, delivered: true }) },
  hungry: { exitCode: 137, reason: "OOMKilled" },
  stopped: { exitCode: 11 },
  broken: { exitCode: 70, message: "SyntaxError" },
  pressed: { evicted: true, delayMs: 2_000 },
};

const targetsFile = `
targets:
  - name: cpu
    description: Any CPU.
    executionProvider: cpu
    operators: standard
    recipe: { scheme: int8-weight }
    presets: { small: { scheme: int4-weight } }
  - name: gpu
    description: Two GPUs.
    executionProvider: cuda
    operators: contrib
    recipe: { scheme: int8-weight }
    gpu: { resource: nvidia.com/gpu, count: 2 }
  - name: big-gpu
    description: More GPUs than a node has.
    executionProvider: cuda
    operators: contrib
    recipe: { scheme: int8-weight }
    gpu: { resource: nvidia.com/gpu, count: 64 }
  - name: elsewhere
    description: Nodes that are not there yet.
    executionProvider: cpu
    operators: standard
    recipe: { scheme: int8-weight }
    nodeSelector: { pool: elsewhere }
`;

let controlPlane: ControlPlane;
let cluster: ObservedJobs;
const used = new AsyncDisposableStack();
after(() => used.disposeAsync());

before(async () => {
  if (skip !== false) return;
  controlPlane = used.use(await startControlPlane());
  const label = "modeloptimization.dev/job";
  const stages = [
    podEndStage(),
    ...Object.entries(ends).map(([name, end]) =>
      podEndStage({ ...end, labels: { [label]: name } }),
    ),
    ...podStuck({
      labels: { [label]: "no-image" },
      reason: "ErrImagePull",
      message: "not found",
      // As if the image had been pulled for long before.
      startTime: "2026-01-01T00:00:00Z",
    }),
    ...podStuck({
      labels: { [label]: "no-secret" },
      reason: "CreateContainerConfigError",
      message: 'secret "x" not found',
    }),
  ];
  used.use(await startKwok(controlPlane, { nodes: 1, gpusPerNode: 4, endStages: stages }));
  cluster = used.use(await observeJobs(controlPlane, namespace));
  const targets = join(controlPlane.folder, "targets.yaml");
  await writeFile(targets, targetsFile);
  const environment = { MOS_TARGETS_FILE: targets, MOS_POD_START_SECONDS: "15" };
  used.use(await startOperator({ kubeconfig: controlPlane.kubeconfig, namespace, environment }));
});

function untilEnd(name: string) {
  return cluster.until(name, ({ status }) => isTerminal(status.status));
}

function untilWaiting(name: string, reason: string) {
  return cluster.until(
    name,
    ({ status }) => status.status === "Pending" && status.statusReason === reason,
  );
}

async function untilDeleted(name: string): Promise<void> {
  await controlPlane.kubectl(["wait", "--for=delete", `cpj/${name}`, "--timeout=240s"]);
}

function hasFailed(workerJob: string): boolean {
  const { conditions = [] } = cluster.jobs.get(workerJob)?.status ?? {};
  return conditions.some(({ type }) => type === "Failed");
}

function listPods(name: string): Stored<Pod>[] {
  return [...cluster.pods.values()].filter(
    ({ metadata }) => metadata.labels?.["modeloptimization.dev/job"] === name,
  );
}

/** The pods that the API server has now, which may be newer than what was observed. */
async function readPods(name: string): Promise<readonly Stored<Pod>[] | undefined> {
  const labelSelector = `modeloptimization.dev/job=${name}`;
  const [page] = await Array.fromAsync(cluster.client.list(resources.pods, { labelSelector }));
  return page?.items;
}

async function untilRunning(name: string): Promise<void> {
  await cluster.untilTrue(() => listPods(name).some(({ status }) => status?.phase === "Running"));
}

/** Pods are watched beside Jobs: the end of a Job may be observed before that of its pods. */
async function untilPhases(name: string, phases: readonly string[]): Promise<void> {
  await cluster.untilTrue(() =>
    isDeepStrictEqual(
      listPods(name).map(({ status }) => status?.phase),
      phases,
    ),
  );
}

/** The same of a Job whose pods, or whose job's status, were observed. */
function untilWorkerJob(name: string): Promise<Stored<KubernetesJob>> {
  return until(`"${name}" is observed`, () => cluster.jobs.get(name));
}

function transitionStatuses(name: string): JobStatus[] {
  const last = cluster.history(name).at(-1);
  return last?.status.transitions?.map(({ status }) => status) ?? [];
}

function findScheduledCondition({ status }: CompressionJob) {
  return status.conditions?.find(({ type }) => type === conditionTypes.scheduled);
}

suite("jobs run", { concurrency: true, skip }, () => {
  test("a job created with kubectl runs in a pod and is Completed", async () => {
    const manifest = {
      apiVersion: "modeloptimization.dev/v1",
      kind: "CompressionJob",
      metadata: { name: "simple" },
      spec: { model: { source: "https://models.test/voices.onnx" }, target: "cpu" },
    };
    await controlPlane.kubectl(["create", "-f", "-"], JSON.stringify(manifest));
    const { status, metadata } = await untilEnd("simple");
    assert.equal(status.status, "Completed");
    assert.deepEqual(transitionStatuses("simple"), ["Completed"]);
    assert.ok(status.startedAt !== undefined && status.finishedAt !== undefined);
    assert.deepEqual(metadata.finalizers, [recordFinalizer]);
    await cluster.untilTrue(() => cluster.jobs.get("simple-work")?.status?.succeeded === 1);
  });

  for (const [name, code, message] of [
    ["refused", "model_invalid", /No graph/],
    ["hungry", "out_of_memory", /ran out of memory/],
  ] as const) {
    test(`a job whose worker is ${name} ends Failed with ${code}, without a second try`, async () => {
      await cluster.create({ name });
      const { status } = await untilEnd(name);
      assert.equal(status.status, "Failed");
      assert.equal(status.error?.code, code);
      assert.equal(status.statusReason, code);
      assert.match(status.error.message, message);
      await cluster.untilTrue(() => cluster.jobs.get(`${name}-work`)?.status?.failed === 1);
      const finished = status.conditions?.find(({ type }) => type === conditionTypes.finished);
      assert.equal(finished?.reason, "Failed");
    });
  }

  test("a job of three steps runs one after the other, the second in as many pods as it wants", async () => {
    await cluster.create({ name: "parallel", spec: { recipe: { parallelism: 3 } } });
    assert.equal((await untilEnd("parallel")).status.status, "Completed");
    const list = () =>
      ["shard", "optimize", "assemble"].map((step) => cluster.jobs.get(`parallel-${step}`)?.status);
    await cluster.untilTrue(() => list().every((status) => status?.completionTime !== undefined));
    assert.equal(list()[1]?.succeeded, 3);
    const times = list().flatMap((status) => [status?.startTime, status?.completionTime]);
    const order = times.map((time) => Date.parse(time ?? ""));
    assert.deepEqual(
      order,
      order.toSorted((one, other) => one - other),
    );
  });

  for (const [name, code, message] of [
    ["broken", "worker_crashed", /code 70: SyntaxError/],
    ["stopped", "worker_killed", /stopped from outside/],
  ] as const) {
    test(`a worker that is ${name} is tried three times`, async () => {
      await cluster.create({ name });
      const { status } = await untilEnd(name);
      assert.equal(status.error?.code, code);
      assert.match(status.error.message, message);
      await cluster.untilTrue(() => hasFailed(`${name}-work`));
      await untilPhases(name, ["Failed", "Failed", "Failed"]);
    });
  }

  test("a job whose pods are evicted as often as they start ends Failed at its deadline", async () => {
    await cluster.create({ name: "pressed", spec: { deadlineSeconds: 10 } });
    const { status } = await untilEnd("pressed");
    assert.equal(status.status, "Failed");
    assert.equal(status.error?.code, "deadline_exceeded");
    await cluster.untilTrue(() => hasFailed("pressed-work"));
    const pods = listPods("pressed");
    assert.ok(pods.length > 1);
    assert.ok(pods.some((pod) => pod.status?.reason === "Evicted"));
  });

  test("a result that the service confirmed to the worker comes from its report", async () => {
    await cluster.create({ name: "reported" });
    await cluster.untilTrue(() => cluster.jobs.get("reported-work")?.status?.succeeded === 1);
    assert.equal(cluster.history("reported").at(-1)?.status.status, "Pending");
    await cluster.report("reported", "Pending", "Sharding", "Failed");
    assert.equal((await untilEnd("reported")).status.status, "Failed");
  });

  test("a worker whose result the service has reported exits on its own", async () => {
    await cluster.create({ name: "leaving" });
    await untilRunning("leaving");
    await cluster.report("leaving", "Completed");
    await cluster.untilTrue(() => cluster.jobs.get("leaving-work")?.status?.succeeded === 1);
    await untilPhases("leaving", ["Succeeded"]);
  });

  for (const [name, spec, code] of [
    ["no-such-target", { target: "tpu" }, "unknown_target"],
    ["no-such-preset", { recipe: { preset: "tiny" } }, "validation_failed"],
  ] as const) {
    test(`a job with ${name.replaceAll("-", " ")} ends Failed at once, without a pod and without a finalizer`, async () => {
      await cluster.create({ name, spec });
      const { status, metadata } = await untilEnd(name);
      assert.equal(status.error?.code, code);
      assert.equal(metadata.finalizers, undefined);
      assert.equal(cluster.jobs.get(`${name}-work`), undefined);
    });
  }

  test("a job reports which GPUs it waits for, and no more when it has them", async () => {
    await cluster.create({ name: "too-big", spec: { target: "big-gpu" } });
    const waiting = await untilWaiting("too-big", "unschedulable");
    assert.equal(
      waiting.status.statusMessage,
      "No node can take the worker: not enough nvidia.com/gpu free (64 needed)",
    );
    assert.equal(findScheduledCondition(waiting)?.status, "False");
    const warnings = ["events", "--field-selector=involvedObject.name=too-big,type=Warning"];
    await controlPlane.kubectl(["wait", "--for=create", ...warnings, "--timeout=240s"]);
    const events = await controlPlane.kubectl(["get", ...warnings]);
    assert.match(events, /Warning\s+Unschedulable.*not enough nvidia.com\/gpu free/);

    await cluster.create({ name: "elsewhere", spec: { target: "elsewhere" } });
    const selective = await untilWaiting("elsewhere", "unschedulable");
    assert.match(
      selective.status.statusMessage ?? "",
      /not among the nodes that the target "elsewhere" selects/,
    );
    await controlPlane.kubectl(["label", "node", "simulated-0", "pool=elsewhere"]);
    const ended = await untilEnd("elsewhere");
    assert.equal(ended.status.status, "Completed");
  });

  test("a job reports that it waits for a quota, and continues when there is room", async () => {
    await controlPlane.kubectl(["create", "namespace", "small"]);
    await controlPlane.kubectl([
      "create",
      "quota",
      "gpus",
      "--hard=requests.nvidia.com/gpu=1",
      "-n",
      "small",
    ]);
    await using small = await observeJobs(controlPlane, "small");
    await using _ = await startOperator({
      kubeconfig: controlPlane.kubeconfig,
      namespace: "small",
      environment: { MOS_TARGETS_FILE: join(controlPlane.folder, "targets.yaml") },
    });
    await small.create({ name: "voices", spec: { target: "gpu" } });
    const { status } = await small.until(
      "voices",
      (job) => job.status.statusReason === "quota_exceeded",
    );
    assert.match(
      status.statusMessage ?? "",
      /quota "gpus": it needs requests.nvidia.com\/gpu=2, and of .*gpu=1 there are .*gpu=0 in use/,
    );
    await controlPlane.kubectl(["delete", "quota", "gpus", "-n", "small"]);
    await small.until("voices", (job) => job.status.status === "Completed");
  });

  for (const [name, reason, message] of [
    ["no-image", "image_unavailable", /image cannot be pulled \(ErrImagePull\): not found/],
    [
      "no-secret",
      "pod_not_starting",
      /cannot be started \(CreateContainerConfigError\): secret "x" not found/,
    ],
  ] as const) {
    test(`a job whose pod has ${name.replace("-", " ")} reports it, and ends Failed when that does not change`, async () => {
      await cluster.create({ name });
      const waiting = await untilWaiting(name, reason);
      assert.match(waiting.status.statusMessage ?? "", message);
      const { status } = await untilEnd(name);
      assert.equal(status.error?.code, "pod_start_failed");
      assert.match(status.error.message, message);
      await cluster.untilTrue(() => hasFailed(`${name}-work`));
      await cluster.untilTrue(() =>
        listPods(name).every(({ metadata }) => metadata.deletionTimestamp !== undefined),
      );
    });
  }

  test("a job with a queue waits until the queue lets it go", async () => {
    await cluster.create({ name: "queued", labels: { "kueue.x-k8s.io/queue-name": "gpus" } });
    const { status } = await untilWaiting("queued", "waiting_for_queue");
    assert.equal(status.statusMessage, 'Waiting to be admitted by the queue "gpus"');
    const { metadata } = await untilWorkerJob("queued-work");
    assert.equal(metadata.labels?.["kueue.x-k8s.io/queue-name"], "gpus");
    assert.deepEqual(listPods("queued"), []);
    await cluster.client.patch<KubernetesJob>(resources.jobs, "queued-work", {
      spec: { suspend: false },
    });
    assert.equal((await untilEnd("queued")).status.status, "Completed");
  });

  test("a job that is suspended stops its pods, and starts again when it is not", async () => {
    await cluster.create({ name: "paused" });
    await untilRunning("paused");
    const first = listPods("paused")[0]?.metadata.uid;
    await cluster.change("paused", { suspend: true });
    await untilWaiting("paused", "suspended");
    await cluster.untilTrue(
      () => listPods("paused").length === 0 && cluster.jobs.get("paused-work") === undefined,
    );
    await cluster.change("paused", { suspend: false });
    await untilRunning("paused");
    assert.notEqual(listPods("paused")[0]?.metadata.uid, first);
    await cluster.until("paused", ({ status }) => status.statusReason === "starting");
  });

  test("a job that is cancelled while it runs is Cancelled when its pod is deleted", async () => {
    await cluster.create({ name: "endless" });
    await untilRunning("endless");
    await cluster.change("endless", { cancel: true });
    await cluster.until("endless", ({ status }) => status.status === "Cancelling");
    await cluster.until("endless", ({ status }) => status.status === "Cancelled");
    assert.deepEqual(await readPods("endless"), []);
    await assert.rejects(cluster.client.get(resources.jobs, "endless-work"), isNotFound);
  });

  test("a job that is cancelled while it waits for a node never runs", async () => {
    await cluster.create({ name: "never", spec: { target: "big-gpu" } });
    await untilWaiting("never", "unschedulable");
    await cluster.change("never", { cancel: true });
    await cluster.until("never", ({ status }) => status.status === "Cancelled");
    assert.deepEqual(await readPods("never"), []);
  });

  test("a job that is cancelled before anything was created for it is Cancelled", async () => {
    await cluster.create({ name: "early", spec: { cancel: true } });
    await cluster.until("early", ({ status }) => status.status === "Cancelled");
    assert.deepEqual(transitionStatuses("early"), ["Cancelled"]);
    assert.equal(cluster.jobs.get("early-work"), undefined);
  });

  test("a deleted resource stays until its pods are deleted and all is recorded", async () => {
    await cluster.create({ name: "abandoned" });
    await untilRunning("abandoned");
    await controlPlane.kubectl(["delete", "cpj", "abandoned", "--wait=false"]);
    await cluster.until("abandoned", ({ status }) => status.status === "Cancelled");
    await cluster.record("abandoned");
    await untilDeleted("abandoned");
    assert.deepEqual(await readPods("abandoned"), []);
  });

  test("a resource is deleted when its time to live is over, with its Jobs and pods", async () => {
    await cluster.create({ name: "short-lived", spec: { ttlSecondsAfterFinished: 1 } });
    await untilEnd("short-lived");
    await cluster.record("short-lived");
    await untilDeleted("short-lived");
    await cluster.untilTrue(
      () =>
        cluster.jobs.get("short-lived-work") === undefined && listPods("short-lived").length === 0,
    );
  });

  test("a Job that a user deletes is created again", async () => {
    await cluster.create({ name: "job-deleted" });
    await untilRunning("job-deleted");
    const { uid: first } = (await untilWorkerJob("job-deleted-work")).metadata;
    await controlPlane.kubectl(["delete", "job", "job-deleted-work"]);
    await cluster.untilTrue(
      () => ![undefined, first].includes(cluster.jobs.get("job-deleted-work")?.metadata.uid),
    );
    await untilRunning("job-deleted");
    assert.equal(cluster.history("job-deleted").at(-1)?.status.status, "Pending");
  });

  test("a job fails where its Job's name belongs to something else", async () => {
    const job = ["create", "job", "taken-work", "--image=example.com/other"];
    await controlPlane.kubectl(job);
    await cluster.create({ name: "taken" });
    const { status } = await untilEnd("taken");
    assert.equal(status.error?.code, "resource_invalid");
    assert.match(
      status.error.message,
      /A Job "taken-work", which this job needs for itself, is there/,
    );
    assert.ok(cluster.jobs.get("taken-work") !== undefined);
  });

  test("a job is neither Completed nor kept by Jobs and pods that others made with its labels", async () => {
    await controlPlane.kubectl(["create", "serviceaccount", "mallory"]);
    const { metadata } = await cluster.create({ name: "attacked" });
    await untilRunning("attacked");
    const { labels = {}, ownerReferences = [] } = (await untilWorkerJob("attacked-work")).metadata;
    assert.deepEqual(ownerReferences[0]?.uid, metadata.uid);
    const forgedLabels = { ...labels, "modeloptimization.dev/step": "assemble" };
    const template = (name: string) => ({
      metadata: { labels: { ...labels, "modeloptimization.dev/job": name } },
      spec: {
        serviceAccountName: "mallory",
        restartPolicy: "Never",
        containers: [{ name: "worker", image: "none" }],
      },
    });
    for (const name of ["forged", "endless-forged"]) {
      await cluster.client.create<KubernetesJob>(resources.jobs, {
        metadata: { name, labels: forgedLabels, ownerReferences },
        spec: { template: template(name) },
      });
    }
    await cluster.untilTrue(() => cluster.jobs.get("forged")?.status?.succeeded === 1);
    await untilRunning("endless-forged");
    await cluster.change("attacked", { cancel: true });
    assert.equal((await untilEnd("attacked")).status.status, "Cancelled");
    assert.equal(listPods("endless-forged")[0]?.metadata.deletionTimestamp, undefined);
  });

  test("a name too long for a Job, and with dots, is no obstacle", async () => {
    const name = `${"voices.v1-".repeat(24)}end`;
    await cluster.create({ name, spec: { recipe: { parallelism: 2 } } });
    assert.equal((await untilEnd(name)).status.status, "Completed");
  });
});
