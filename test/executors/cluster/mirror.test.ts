import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { CompressionJobStatus } from "../../../src/contract/custom-resources/compression-job.ts";
import {
  recordFinalizer,
  resourceLabels,
} from "../../../src/contract/custom-resources/resource-labels.ts";
import type { JobStatus } from "../../../src/contract/jobs/status.ts";
import { assignment } from "../../../src/contract/worker-protocol/messages.ts";
import { batches, compressionJobs } from "../../../src/resources/custom-resources.ts";
import { childCompressionJob } from "../../../src/resources/child-compression-job.ts";
import { resolveBatchId, resolveJobId } from "../../../src/resources/job-identity.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { externalFiles, writeExternalModel } from "../../support/external-model.ts";
import { type ClusterService, startClusterService } from "./cluster-service.ts";
import { logged, playPod } from "./played-pod.ts";
import { until } from "../../support/until.ts";

const options = { skip: clusterMissing };
const model = { source: "https://models.example/detector.onnx" };

async function findResource({ api }: ClusterService, name: string) {
  return api.get(compressionJobs, name).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
}

/** The resource once the check holds for its status. */
function untilStatus(
  service: ClusterService,
  name: string,
  check: (status: CompressionJobStatus) => boolean,
) {
  return until(`the status of "${name}" is as awaited`, async () => {
    const resource = await findResource(service, name);
    return resource?.status && check(resource.status) && { ...resource, status: resource.status };
  });
}

function isRecorded({ report }: CompressionJobStatus): boolean {
  return report?.recorded === true;
}

/** The resource once the service has reported a status of its job. */
function untilReported(service: ClusterService, name: string, status: JobStatus) {
  return untilStatus(service, name, ({ report }) => report?.transitions?.at(-1)?.status === status);
}

function untilJob({ client }: ClusterService, id: string, status: string) {
  return until(`job "${id}" is ${status}`, async () => {
    const found = await client.call("getJob", { params: { id } }).catch(() => undefined);
    return found?.status === status && found;
  });
}

/** Plays the operator: what became of a job. */
async function writeResourceStatus(
  { api }: ClusterService,
  name: string,
  status: CompressionJobStatus,
): Promise<void> {
  await api.patch(compressionJobs, name, { status }, { subresource: "status" });
}

async function followLog({ client }: ClusterService, id: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of client.followLogs(id)) lines.push(line.text);
  return lines;
}

function isResource(service: ClusterService, name: string) {
  return until(`"${name}" is a resource`, () => findResource(service, name));
}

test(
  "a job started over REST becomes a resource, and what its worker reports stands in it",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const body = {
      model,
      target: "cpu",
      recipe: { scheme: "int4-weight" as const },
      labels: { team: "vision" },
    };
    const { id, recipe } = await service.client.call("startCompression", { body });
    const { metadata, spec } = await isResource(service, id);
    assert.equal(metadata.labels?.[resourceLabels.jobId], id);
    assert.deepEqual(metadata.finalizers, [recordFinalizer]);
    assert.deepEqual(spec.recipe, recipe);
    assert.equal(spec.ttlSecondsAfterFinished, 86_400);

    const pod = await playPod(service, id);
    await pod.report({ type: "status", status: "Sharding" }, logged("one"));
    await untilReported(service, id, "Sharding");
    const size = { originalBytes: 1000, resultBytes: 270, ratio: 0.27, predicted: false };
    const stored = await pod.store("x".repeat(270));
    const artifact = { name: "model.onnx", kind: "model" as const, ...stored };
    await pod.report(
      { type: "status", status: "Optimizing" },
      { type: "telemetry", telemetry: { progress: { fraction: 0.5 }, size } },
      { type: "artifact", artifact },
      logged("two"),
      { type: "result", outcome: "Completed" },
    );
    const { status } = await untilStatus(service, id, isRecorded);
    const { report = {} } = status;
    assert.equal(status.status, "Pending", "the operator derives it");
    assert.equal(report.progress, "100%");
    assert.equal(report.ratio, "0.27");
    assert.deepEqual(report.artifacts, [artifact]);
    assert.deepEqual(
      report.transitions?.map((transition) => transition.status),
      ["Pending", "Sharding", "Optimizing", "Completed"],
    );
    assert.deepEqual(await followLog(service, id), ["one", "two"]);
  },
);

test(
  "a resource made with kubectl is a job of the REST interface, with the operator's words",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const made = await service.api.create(compressionJobs, {
      metadata: { name: "detector" },
      spec: {
        kind: "quantize",
        model,
        target: "cpu",
        dryRun: false,
        cancel: false,
        suspend: false,
      },
    });
    const id = resolveJobId(made);
    const job = await untilJob(service, id, "Pending");
    assert.equal(job.kind, "quantize");
    assert.equal(Date.parse(job.createdAt), Date.parse(made.metadata.creationTimestamp));
    const words = { statusReason: "unschedulable", statusMessage: "No node has 2 nvidia.com/gpu" };
    await writeResourceStatus(service, "detector", { status: "Pending", ...words });
    await until("the reason is reported", async () => {
      const { statusReason, statusMessage } = await service.client.call("getJob", {
        params: { id },
      });
      return statusReason === words.statusReason && statusMessage === words.statusMessage;
    });
    await writeResourceStatus(service, "detector", {
      status: "Failed",
      error: { code: "pod_start_failed", message: "The image cannot be pulled" },
    });
    assert.equal((await untilJob(service, id, "Failed")).error?.code, "pod_start_failed");
    // Only then its time to live begins.
    await untilStatus(service, "detector", isRecorded);
  },
);

test(
  "a Batch that is too large is not recorded, and what bears its label is alone",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const exclude = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(200, "x"));
    const controls = { dryRun: false, cancel: false, suspend: false };
    const large = await service.api.create(batches, {
      metadata: { name: "large" },
      spec: {
        kind: "compress",
        models: Array.from({ length: 1000 }, () => model),
        targets: ["cpu", "cpu-int8"],
        recipe: { exclude },
        parallelism: 1,
        failFast: false,
        ...controls,
      },
    });
    const batchId = resolveBatchId(large);
    const made = await service.api.create(compressionJobs, {
      metadata: { name: "bearer", labels: { [resourceLabels.batchId]: batchId } },
      spec: { kind: "compress", model, target: "cpu", ...controls },
    });
    const job = await untilJob(service, resolveJobId(made), "Pending");
    assert.equal(job.batchId, null);
    const found = service.client.call("getBatch", { params: { id: batchId } });
    await assert.rejects(found, /not_found/);
  },
);

test("a resource whose target is not known is recorded as well", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const made = await service.api.create(compressionJobs, {
    metadata: { name: "lost" },
    spec: { kind: "compress", model, target: "tpu", dryRun: false, cancel: false, suspend: false },
  });
  await untilJob(service, resolveJobId(made), "Pending");
});

test(
  "a cancellation over REST is asked of the operator, and done when the operator says so",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const { id } = await service.client.call("startCompression", {
      body: { model, target: "cpu" },
    });
    await isResource(service, id);
    const pod = await playPod(service, id);
    await pod.report({ type: "status", status: "Sharding" });
    assert.equal((await service.client.call("cancelJob", { params: { id } })).status, "Cancelling");
    assert.equal((await pod.report(logged("stopping"))).cancelled, true);
    await until(
      "the operator is asked",
      async () => (await findResource(service, id))?.spec.cancel,
    );
    await writeResourceStatus(service, id, { status: "Cancelling" });
    await writeResourceStatus(service, id, { status: "Cancelled", statusReason: "cancelled" });
    await pod.end(11, { outcome: "Cancelled", lastSeq: 2 });
    await untilJob(service, id, "Cancelled");
    await untilStatus(service, id, isRecorded);
    assert.deepEqual(await followLog(service, id), ["stopping"]);
  },
);

test("a cancellation with kubectl stops the job of the REST interface", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { id } = await service.client.call("startCompression", { body: { model, target: "cpu" } });
  await isResource(service, id);
  await service.api.patch(compressionJobs, id, { spec: { cancel: true } });
  await untilJob(service, id, "Cancelling");
  await writeResourceStatus(service, id, { status: "Cancelling" });
  await writeResourceStatus(service, id, { status: "Cancelled" });
  await untilJob(service, id, "Cancelled");
});

test("a deleted resource cancels its job, whose history stays", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { api } = service;
  const made = await api.create(compressionJobs, {
    metadata: { name: "short-lived" },
    spec: { kind: "compress", model, target: "cpu", dryRun: false, cancel: false, suspend: false },
  });
  const id = resolveJobId(made);
  await untilJob(service, id, "Pending");
  const pod = await playPod(service, id);
  await pod.report({ type: "status", status: "Sharding" }, logged("one"));
  await api.delete(compressionJobs, "short-lived", { propagationPolicy: "Background" });
  // Its pod goes with it.
  await untilJob(service, id, "Cancelled");
  const [first, second] = await followLog(service, id);
  assert.equal(first, "one");
  assert.match(second ?? "", /^\(lines of the worker may be missing here/);
});

test("a job whose pod was taken away is Pending again until another works", options, async (t) => {
  const service = await startClusterService(t, await createTestNamespace());
  const { id } = await service.client.call("startCompression", { body: { model, target: "cpu" } });
  await isResource(service, id);
  const pod = await playPod(service, id);
  await pod.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
  );
  const working = await untilReported(service, id, "Optimizing");
  const interruption = { status: "Pending" as const, at: new Date().toISOString() };
  const words = { statusReason: "waiting_for_queue", statusMessage: "Waiting for the queue" };
  const transitions = [...(working.status.report?.transitions ?? []), interruption];
  await writeResourceStatus(service, id, { status: "Pending", ...words, transitions });
  // Until the pod has ended it may report more.
  const { nextSeq } = await pod.report(logged("stopping"));
  assert.equal(nextSeq, 4);
  assert.equal((await service.client.call("getJob", { params: { id } })).status, "Optimizing");
  await pod.end(11, { outcome: "Cancelled", lastSeq: 3 });
  const waiting = await untilJob(service, id, "Pending");
  assert.equal(waiting.statusReason, "waiting_for_queue");

  const next = await playPod(service, id, { name: `${id}-next` });
  await next.report(
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  );
  const { status } = await untilStatus(service, id, isRecorded);
  assert.deepEqual(
    status.report?.transitions?.map((transition) => transition.status),
    ["Pending", "Optimizing", "Completed"],
  );
  const { transitions: all } = await service.client.call("getJob", { params: { id } });
  assert.deepEqual(
    all.map((transition) => transition.status),
    ["Pending", "Sharding", "Optimizing", "Pending", "Optimizing", "Completed"],
  );
});

test("a service that is killed goes on where it was", options, async (t) => {
  const first = await startClusterService(t, await createTestNamespace());
  const { id } = await first.client.call("startCompression", { body: { model, target: "cpu" } });
  await isResource(first, id);
  const pod = await playPod(first, id);
  await pod.report({ type: "status", status: "Sharding" }, logged("one"));
  await first.stop("SIGKILL");
  const second = await first.again();
  await pod.report({ type: "status", status: "Optimizing" }, logged("two"), {
    type: "result",
    outcome: "Completed",
  });
  await untilStatus(second, id, isRecorded);
  assert.deepEqual(await followLog(second, id), ["one", "two"]);
});

test("what happens while the service is down is found out afterwards", options, async (t) => {
  const first = await startClusterService(t, await createTestNamespace());
  const { api, client } = first;
  const ids: string[] = [];
  for (let i = 0; i < 3; i++)
    ids.push((await client.call("startCompression", { body: { model, target: "cpu" } })).id);
  const [cancelled = "", failed = "", deleted = ""] = ids;
  for (const id of ids) await isResource(first, id);
  await first.stop("SIGTERM");
  await api.patch(compressionJobs, cancelled, { spec: { cancel: true } });
  await writeResourceStatus(first, failed, {
    status: "Failed",
    error: { code: "out_of_memory", message: "The worker needs more" },
  });
  await api.patch(compressionJobs, deleted, { metadata: { finalizers: null } });
  await api.delete(compressionJobs, deleted, { propagationPolicy: "Background" });
  const second = await first.again();
  await untilJob(second, cancelled, "Cancelling");
  assert.equal((await untilJob(second, failed, "Failed")).error?.code, "out_of_memory");
  await untilStatus(second, failed, isRecorded);
  await untilJob(second, deleted, "Cancelled");
  assert.equal(await findResource(second, deleted), undefined);
});

test("a lost database is rebuilt from the cluster", options, async (t) => {
  const first = await startClusterService(t, await createTestNamespace());
  const { id } = await first.client.call("startCompression", { body: { model, target: "cpu" } });
  await isResource(first, id);
  const pod = await playPod(first, id);
  await pod.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
  );
  const { report } = (await untilReported(first, id, "Optimizing")).status;
  await writeResourceStatus(first, id, {
    status: "Optimizing",
    transitions: report?.transitions,
  });
  const before = await first.client.call("getJob", { params: { id } });
  await first.stop("SIGTERM");
  await rm(first.directory, { recursive: true });
  const second = await startClusterService(t, first);
  const after = await untilJob(second, id, "Optimizing");
  assert.deepEqual(after.transitions, before.transitions);
  assert.deepEqual(after.recipe, before.recipe);
});

test(
  "a job goes on with its manifest, and is tried again, after the database was lost",
  options,
  async (t) => {
    const first = await startClusterService(t, await createTestNamespace());
    const folder = await mkdtemp(join(tmpdir(), "manifest-"));
    t.after(() => rm(folder, { recursive: true }));
    const { source } = await first.client.uploadModel(await writeExternalModel(folder));
    const { id } = await first.client.call("startCompression", {
      body: { model: { source }, target: "cpu" },
    });
    const { metadata } = await isResource(first, id);
    await first.stop("SIGTERM");
    // Times of resources have whole seconds, and records of the same second are not younger.
    const nextSecond = Date.parse(metadata.creationTimestamp) + 1000;
    await until("the resource's second has passed", () => Date.now() > nextSecond);
    for (const name of await readdir(first.directory)) {
      if (name.startsWith("service.sqlite")) await rm(join(first.directory, name));
    }
    const settings = { MOS_DATA_DIR: first.directory };
    const service = await startClusterService(t, { ...first, settings });
    const pod = await playPod(service, id);
    const answer = await until("the pod is known", async () => {
      const reply = await pod.ask("");
      return reply.ok && reply;
    });
    const { files = [] } = assignment.parse(await answer.json()).model;
    const paths = files.map((file) => file.path).toSorted();
    assert.deepEqual(paths, [...externalFiles, "net.onnx"].toSorted());
    for (const { sha256, bytes } of files) {
      const blob = await pod.ask(`/blobs/${sha256}`);
      assert.equal((await blob.bytes()).length, bytes);
    }
    const error = { code: "worker_crashed", message: "The worker crashed" } as const;
    await pod.report({ type: "result", outcome: "Failed", error });
    const retried = await service.client.call("retryJob", { params: { id } });
    assert.equal(retried.model.source, source);
  },
);

test(
  "a batch over REST becomes a Batch, and its cancellation is asked of the operator once",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const body = {
      models: [model, { source: "https://models.example/other.onnx" }],
      targets: ["cpu", "cpu-int8"],
    };
    const { id, jobs } = await service.client.call("submitBatch", { body });
    const made = await until("the batch is a resource", () =>
      service.api.get(batches, id).catch(() => undefined),
    );
    assert.deepEqual(made.spec.models, body.models);
    assert.equal(made.metadata.labels?.[resourceLabels.batchId], id);
    assert.equal(jobs.length, 4);
    await service.client.call("cancelBatch", { params: { id } });
    await until(
      "the operator is asked",
      async () => (await service.api.get(batches, id)).spec.cancel,
    );
    await service.api.patch(
      batches,
      id,
      { status: { status: "Cancelled" } },
      { subresource: "status" },
    );
    await until("the batch is Cancelled", async () => {
      return (await service.client.call("getBatch", { params: { id } })).status === "Cancelled";
    });
  },
);

test(
  "a Batch made with kubectl is a batch of the REST interface, with all of its jobs",
  options,
  async (t) => {
    const service = await startClusterService(t, await createTestNamespace());
    const { api, client } = service;
    const spec = { models: [model], targets: ["cpu", "cpu-int8"], suite: "nightly" };
    const controls = {
      kind: "compress" as const,
      dryRun: false,
      parallelism: 1,
      failFast: false,
      cancel: false,
      suspend: false,
    };
    const batch = { metadata: { name: "nightly" }, spec: { ...spec, ...controls } };
    const nightly = await api.create(batches, batch);
    const found = await until("the batch is recorded", async () => {
      const { batches: all } = await client.call("listBatches", { query: { suite: "nightly" } });
      return all[0];
    });
    const { jobs } = await client.call("getBatch", { params: { id: found.id } });
    assert.deepEqual(
      jobs.map(({ target, status }) => [target, status]),
      [
        ["cpu", "Pending"],
        ["cpu-int8", "Pending"],
      ],
    );
    // As one deletes it with --cascade=orphan: only what it has made goes on.
    const made = childCompressionJob(nightly, 0);
    const metadata = { ...made.metadata, finalizers: [], ownerReferences: [] };
    const orphan = await api.create(compressionJobs, { ...made, metadata });
    await api.patch(batches, "nightly", { metadata: { finalizers: ["example.com/held"] } });
    await api.delete(batches, "nightly", { propagationPolicy: "Orphan" });
    const stray = await api.create(compressionJobs, {
      metadata: { name: "stray", labels: { [resourceLabels.batchId]: found.id } },
      spec: {
        kind: "compress",
        model,
        target: "cpu",
        dryRun: false,
        cancel: false,
        suspend: false,
      },
    });
    const { batchId } = await untilJob(service, resolveJobId(stray), "Pending");
    assert.equal(batchId, null);
    await api.patch(batches, "nightly", { metadata: { finalizers: null } });
    const [first = "", second = ""] = jobs.map(({ id }) => id);
    await untilJob(service, second, "Cancelled");
    await untilJob(service, first, "Pending");
    assert.equal((await api.get(compressionJobs, orphan.metadata.name)).spec.cancel, false);
    await api.delete(compressionJobs, orphan.metadata.name, { propagationPolicy: "Background" });
    await until("the batch is Cancelled", async () => {
      return (await client.call("getBatch", { params: { id: found.id } })).status === "Cancelled";
    });
  },
);
