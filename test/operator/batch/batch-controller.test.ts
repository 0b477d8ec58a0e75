import assert from "node:assert/strict";
import test from "node:test";
import {
  recordFinalizer,
  resourceLabels,
} from "../../../src/contract/custom-resources/resource-labels.ts";
import { batchJobId } from "../../../src/contract/id.ts";
import {
  batches as batchType,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { resolveBatchId, resolveJobId } from "../../../src/resources/job-identity.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { connectTestCluster } from "../../kubernetes/connect-test-cluster.ts";
import { makeSpec } from "./make-batch.ts";
import { playJob, removeFinalizers, runBatches, untilSeen } from "./run-batches.ts";

const skip = clusterMissing;
const failedGate = {
  gate: "minSqnrDb",
  limit: 30,
  actual: 12,
  level: "fail",
  passed: false,
} as const;
const failure = { code: "model_invalid", message: "The file is not ONNX" } as const;

test(
  "a batch creates a job for each model and target, and reports their states",
  { skip },
  async () => {
    const { client, cluster } = await connectTestCluster();
    await using operator = await runBatches(client);
    const { batches, compressionJobs, events, stop } = operator;
    const spec = makeSpec({
      models: 2,
      kind: "quantize",
      recipe: { scheme: "fp16" },
      gates: { minSqnrDb: 30 },
      labels: { team: "x" },
    });
    const labels = { [resourceLabels.queue]: "gpus", [resourceLabels.queuePriority]: "low" };
    const batch = await client.create(batchType, { metadata: { name: "nightly", labels }, spec });
    const jobs = await untilSeen(compressionJobs, (all) => (all.length === 4 ? all : undefined));

    assert.deepEqual(
      jobs.map((job) => [job.metadata.name, job.spec.model.name, job.spec.target]),
      [
        ["nightly-0000", "model-0", "cpu"],
        ["nightly-0001", "model-0", "cpu-int8"],
        ["nightly-0002", "model-1", "cpu"],
        ["nightly-0003", "model-1", "cpu-int8"],
      ],
    );
    assert.deepEqual(
      jobs.map(resolveJobId),
      [0, 1, 2, 3].map((index) => batchJobId(resolveBatchId(batch), index)),
    );
    const [first] = jobs;
    assert.deepEqual(first?.spec, {
      kind: "quantize",
      model: { source: "https://models.test/0.onnx", name: "model-0" },
      target: "cpu",
      recipe: { scheme: "fp16" },
      gates: { minSqnrDb: 30 },
      dryRun: false,
      labels: { team: "x" },
      cancel: false,
      suspend: false,
    });
    assert.deepEqual(first.metadata.labels, {
      [resourceLabels.batch]: "nightly",
      [resourceLabels.batchId]: resolveBatchId(batch),
      [resourceLabels.jobId]: resolveJobId(first),
      ...labels,
    });
    assert.deepEqual(first.metadata.finalizers, [recordFinalizer]);

    const startedAt = "2026-03-01T00:00:00.000Z";
    await playJob(client, "nightly-0000", { status: "Optimizing", startedAt });
    const running = await untilSeen(batches, ([one]) =>
      one?.status?.status === "Running" ? one.status : undefined,
    );
    assert.deepEqual([running.finished, running.jobs, running.startedAt], ["0/4", 4, startedAt]);
    await playJob(client, "nightly-0000", { status: "Completed", report: { gates: [failedGate] } });
    for (const name of ["nightly-0001", "nightly-0002", "nightly-0003"])
      await playJob(client, name, { status: "Completed" });
    const status = await untilSeen(batches, ([one]) =>
      one?.status?.finishedAt === undefined ? undefined : one.status,
    );
    assert.deepEqual(
      [status.status, status.finished, status.counts?.Completed, status.gatesFailed],
      ["Completed", "4/4", 4, 1],
    );
    assert.equal(status.marks, "gccc");
    assert.equal(status.statusMessage, "1 of 4 jobs have a gate that failed");
    await playJob(client, "nightly-0001", { status: "Completed", report: { gates: [failedGate] } });
    const late = await untilSeen(batches, ([one]) =>
      one?.status?.marks === "ggcc" ? one.status : undefined,
    );
    assert.equal(late.statusMessage, "2 of 4 jobs have a gate that failed");
    const figures = { gatesFailed: 2, finishedAt: status.finishedAt, counts: status.counts };
    assert.partialDeepStrictEqual(late, { status: "Completed", ...figures });
    await stop();
    assert.deepEqual(
      events.map(({ type, reason }) => [type, reason]),
      [["Normal", "Completed"]],
    );
    const shown = await cluster.kubectl(["get", "cbatch", "-n", client.namespace]);
    assert.match(shown, /NAME +STATUS +FINISHED +FAILED +AGE\nnightly +Completed +4\/4 +0 /);
    await cluster.kubectl([
      "wait",
      "--for=condition=Finished",
      "cbatch/nightly",
      "-n",
      client.namespace,
      "--timeout=240s",
    ]);
  },
);

test(
  "a batch of 1,000 jobs has no more unfinished ones than it allows, and creates each once",
  { skip },
  async (t) => {
    const { client, calls } = await connectTestCluster();
    await using operator = await runBatches(client);
    const { batches, compressionJobs, logged } = operator;
    const parallelism = 40;
    const made = new Set<string>();
    let most = 0;
    const played = new Map<string, Promise<void>>();
    compressionJobs.onChange(({ metadata: { name, uid } }) => {
      made.add(uid);
      const all = [...compressionJobs.cache.values()];
      most = Math.max(most, all.filter(({ status }) => status?.status === "Pending").length);
      if (!played.has(name)) played.set(name, playJob(client, name, { status: "Completed" }));
    });
    const start = performance.now();
    await client.create(batchType, {
      metadata: { name: "large" },
      spec: makeSpec({ models: 500, parallelism }),
    });
    const status = await untilSeen(batches, ([one]) =>
      one?.status?.finishedAt === undefined ? undefined : one.status,
    );
    const seconds = (performance.now() - start) / 1_000;
    await Promise.all(played.values());

    assert.deepEqual(
      [status.status, status.finished, status.marks],
      ["Completed", "1000/1000", "c".repeat(1_000)],
    );
    assert.equal(made.size, 1_000);
    assert.ok(most <= parallelism, `${most} jobs at once`);
    assert.deepEqual(logged, []);
    const writes = calls.filter(({ resource }) => resource === "batches/status").length;
    assert.ok(writes <= seconds + 3, `${writes} writes of the status in ${seconds} s`);
    assert.equal(
      calls.filter(({ verb, resource }) => verb === "create" && resource === "compressionjobs")
        .length,
      1_000,
    );
    t.diagnostic(`1,000 jobs in ${seconds.toFixed(1)} s, ${writes} writes of the batch's status`);
  },
);

test(
  "a batch that fails fast cancels what is left as soon as one job fails",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    await using operator = await runBatches(client);
    const { batches, compressionJobs, events, stop } = operator;
    await client.create(batchType, {
      metadata: { name: "fast" },
      spec: makeSpec({ models: 3, parallelism: 2, failFast: true }),
    });
    await untilSeen(compressionJobs, (all) => (all.length === 2 ? all : undefined));
    await playJob(client, "fast-0000", { status: "Failed", error: failure });
    await untilSeen(compressionJobs, ([, second]) => (second?.spec.cancel ? second : undefined));
    const stopping = await untilSeen(batches, ([one]) =>
      one?.status?.failures ? one.status : undefined,
    );
    assert.deepEqual([stopping.status, stopping.marks], ["Running", "fmxxxx"]);
    await playJob(client, "fast-0001", { status: "Cancelled" });
    const status = await untilSeen(batches, ([one]) =>
      one?.status?.finishedAt === undefined ? undefined : one.status,
    );
    assert.deepEqual(
      [status.status, status.finished, status.statusMessage],
      ["Failed", "6/6", "1 of 6 jobs failed"],
    );
    assert.deepEqual(status.failures, [
      {
        job: "fast-0000",
        model: "model-0",
        target: "cpu",
        reason: failure.code,
        message: failure.message,
      },
    ]);
    await stop();
    assert.deepEqual(
      events.map(({ type, reason }) => `${type} ${reason}`),
      ["Warning JobFailed", "Warning Failed"],
    );
    assert.equal([...compressionJobs.cache.values()].length, 2);
  },
);

test("a cancelled batch is Cancelled when the last of its jobs is", { skip }, async () => {
  const { client } = await connectTestCluster();
  await using operator = await runBatches(client);
  const { batches, compressionJobs } = operator;
  await client.create(batchType, {
    metadata: { name: "off" },
    spec: makeSpec({ models: 3, parallelism: 2 }),
  });
  await untilSeen(compressionJobs, (all) => (all.length === 2 ? all : undefined));
  await client.patch(batchType, "off", { spec: { cancel: true } });
  await untilSeen(compressionJobs, (all) =>
    all.every(({ spec }) => spec.cancel) ? all : undefined,
  );
  const cancelling = await untilSeen(batches, ([one]) =>
    one?.status?.status === "Cancelling" ? one.status : undefined,
  );
  assert.equal(cancelling.statusMessage, "2 of 6 jobs are still stopping");
  await playJob(client, "off-0000", { status: "Cancelled" });
  await playJob(client, "off-0001", { status: "Completed" });
  const status = await untilSeen(batches, ([one]) =>
    one?.status?.finishedAt === undefined ? undefined : one.status,
  );
  assert.deepEqual(
    [status.status, status.marks, status.counts?.Cancelled],
    ["Cancelled", "xcxxxx", 5],
  );
});

test(
  "an operator that is started again continues where the last one stopped",
  { skip },
  async () => {
    const { client, calls } = await connectTestCluster();
    await using first = await runBatches(client);
    await client.create(batchType, {
      metadata: { name: "long" },
      spec: makeSpec({ models: 2, parallelism: 2 }),
    });
    await untilSeen(first.compressionJobs, (all) => (all.length === 2 ? all : undefined));
    await first.stop();
    await playJob(client, "long-0000", { status: "Completed" });
    await using second = await runBatches(client);
    await untilSeen(second.compressionJobs, (all) => (all.length === 3 ? all : undefined));
    for (const name of ["long-0001", "long-0002"])
      await playJob(client, name, { status: "Completed" });
    await untilSeen(second.compressionJobs, (all) => (all.length === 4 ? all : undefined));
    await playJob(client, "long-0003", { status: "Completed" });
    const status = await untilSeen(second.batches, ([one]) =>
      one?.status?.finishedAt === undefined ? undefined : one.status,
    );
    assert.deepEqual([status.status, status.marks], ["Completed", "cccc"]);
    assert.equal(
      calls.filter(({ verb, resource }) => verb === "create" && resource === "compressionjobs")
        .length,
      4,
    );
  },
);

test(
  "two operators at once, of which one is stopped and started, create no job twice or too early",
  { skip },
  async (t) => {
    const { client } = await connectTestCluster();
    await using steady = await runBatches(client);
    const made = new Set<string>();
    let most = 0;
    const played = new Map<string, Promise<void>>();
    steady.compressionJobs.onChange(({ metadata: { name, uid } }) => {
      made.add(uid);
      const all = [...steady.compressionJobs.cache.values()];
      most = Math.max(most, all.filter(({ status }) => status?.status === "Pending").length);
      if (!played.has(name)) played.set(name, playJob(client, name, { status: "Completed" }));
    });
    await client.create(batchType, {
      metadata: { name: "both" },
      spec: makeSpec({ models: 60, parallelism: 5 }),
    });
    const finishedAt = () =>
      steady.batches.cache.get(`${client.namespace}/both`)?.status?.finishedAt;
    const end = untilSeen(steady.batches, finishedAt);
    let restarts = 0;
    for (; finishedAt() === undefined; restarts++) {
      await using other = await runBatches(client);
      const seen = steady.compressionJobs.size;
      await Promise.race([
        end,
        untilSeen(steady.compressionJobs, (all) => (all.length > seen + 5 ? true : undefined)),
      ]);
      await other.stop();
      assert.deepEqual(other.logged, []);
    }
    await Promise.all(played.values());
    t.diagnostic(`${restarts} restarts`);
    const status = await untilSeen(steady.batches, ([one]) => one?.status);
    assert.deepEqual([status.status, status.marks, made.size], ["Completed", "c".repeat(120), 120]);
    assert.ok(most <= 5, `${most} jobs at once`);
    assert.deepEqual(steady.logged, []);
  },
);

test(
  "a job that is deleted by hand counts as cancelled, one that had ended as what it was",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    await using operator = await runBatches(client);
    const { batches, compressionJobs } = operator;
    await client.create(batchType, {
      metadata: { name: "cut" },
      spec: makeSpec({ models: 2, parallelism: 3 }),
    });
    await untilSeen(compressionJobs, (all) => (all.length === 3 ? all : undefined));
    await playJob(client, "cut-0000", { status: "Completed" });
    await untilSeen(batches, ([one]) => (one?.status?.marks === "cmmm" ? one : undefined));
    for (const name of ["cut-0000", "cut-0001"]) {
      await client.delete(compressionJobType, name, { propagationPolicy: "Background" });
      await removeFinalizers(client, name);
    }
    await untilSeen(batches, ([one]) => (one?.status?.marks === "cxmm" ? one : undefined));
    for (const name of ["cut-0002", "cut-0003"])
      await playJob(client, name, { status: "Completed" });
    const status = await untilSeen(batches, ([one]) =>
      one?.status?.finishedAt === undefined ? undefined : one.status,
    );
    assert.deepEqual([status.status, status.marks, status.finished], ["Cancelled", "cxcc", "4/4"]);
  },
);

test("a name that another owner has fails its job, with the reason", { skip }, async () => {
  const { client } = await connectTestCluster();
  const {
    models: [model],
    ...spec
  } = makeSpec({ models: 1, targets: ["cpu"] });
  const { kind, dryRun, cancel, suspend } = spec;
  assert.ok(model);
  const foreign = {
    metadata: { name: "own-0000" },
    spec: { kind, model, target: "gpu", dryRun, cancel, suspend },
  };
  await client.create(compressionJobType, foreign);
  await using operator = await runBatches(client);
  const { batches, events, stop } = operator;
  await client.create(batchType, { metadata: { name: "own" }, spec: { ...spec, models: [model] } });
  const status = await untilSeen(batches, ([one]) =>
    one?.status?.finishedAt === undefined ? undefined : one.status,
  );
  assert.deepEqual([status.status, status.failures?.[0]?.reason], ["Failed", "NameConflict"]);
  await stop();
  assert.match(
    events[0]?.message ?? "",
    /^own-0000: NameConflict: Another CompressionJob has the name/,
  );
  assert.equal((await client.get(compressionJobType, "own-0000")).spec.target, "gpu");
});

test(
  "a batch that is created again under its name waits until the jobs of the first are deleted",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    await using operator = await runBatches(client);
    const { batches, compressionJobs } = operator;
    const spec = makeSpec({ models: 1, targets: ["cpu"] });
    const first = await client.create(batchType, { metadata: { name: "again" }, spec });
    await untilSeen(compressionJobs, (all) => (all.length === 1 ? all : undefined));
    await client.delete(batchType, "again", { propagationPolicy: "Background" });
    await client.create(batchType, { metadata: { name: "again" }, spec });
    const waiting = await untilSeen(batches, ([one]) => one?.status?.statusMessage);
    assert.match(waiting, /^Waits until CompressionJob "again-0000" of an earlier Batch/);
    await untilSeen(compressionJobs, ([job]) => job?.metadata.deletionTimestamp);
    await removeFinalizers(client, "again-0000");
    const job = await untilSeen(compressionJobs, ([one]) =>
      one?.metadata.deletionTimestamp === undefined ? one : undefined,
    );
    assert.notEqual(job.metadata.ownerReferences?.[0]?.uid, first.metadata.uid);
  },
);

test("a suspended batch holds its jobs, and lets them go on", { skip }, async () => {
  const { client } = await connectTestCluster();
  await using operator = await runBatches(client);
  const { batches, compressionJobs } = operator;
  await client.create(batchType, {
    metadata: { name: "hold" },
    spec: makeSpec({ models: 2, parallelism: 2 }),
  });
  await untilSeen(compressionJobs, (all) => (all.length === 2 ? all : undefined));
  await client.patch(batchType, "hold", { spec: { suspend: true } });
  await untilSeen(compressionJobs, (all) =>
    all.every(({ spec }) => spec.suspend) ? all : undefined,
  );
  await playJob(client, "hold-0000", { status: "Completed" });
  const held = await untilSeen(batches, ([one]) =>
    one?.status?.finished === "1/4" ? one.status : undefined,
  );
  assert.equal(held.statusMessage, "Suspended: 3 of 4 jobs wait");
  assert.equal(compressionJobs.size, 2);
  await client.patch(batchType, "hold", { spec: { suspend: false } });
  await untilSeen(compressionJobs, (all) =>
    all.length === 3 && !all[1]?.spec.suspend ? all : undefined,
  );
});

test("a batch whose parallelism is raised begins more jobs at once", { skip }, async () => {
  const { client } = await connectTestCluster();
  await using operator = await runBatches(client);
  const { compressionJobs } = operator;
  await client.create(batchType, {
    metadata: { name: "wider" },
    spec: makeSpec({ models: 3, parallelism: 1 }),
  });
  await untilSeen(compressionJobs, (all) => (all.length === 1 ? all : undefined));
  await client.patch(batchType, "wider", { spec: { parallelism: 4 } });
  await untilSeen(compressionJobs, (all) => (all.length === 4 ? all : undefined));
});

test(
  "a batch that has ended is deleted with its jobs after its time to live",
  { skip },
  async () => {
    const { client } = await connectTestCluster();
    await using operator = await runBatches(client);
    const { batches, compressionJobs, events } = operator;
    const spec = makeSpec({ models: 1, targets: ["cpu"], ttlSecondsAfterFinished: 1 });
    await client.create(batchType, { metadata: { name: "short" }, spec });
    await untilSeen(compressionJobs, (all) => (all.length === 1 ? all : undefined));
    await playJob(client, "short-0000", { status: "Completed", report: { recorded: true } });
    await untilSeen(batches, (all) => (all.length === 0 && events.length > 0 ? true : undefined));
    await untilSeen(compressionJobs, ([job]) => job?.metadata.deletionTimestamp);
    await removeFinalizers(client, "short-0000");
    await untilSeen(compressionJobs, (all) => (all.length === 0 ? true : undefined));
    await assert.rejects(client.get(batchType, "short"), isNotFound);
  },
);

test("a batch without a time to live has the operator's", { skip }, async () => {
  const { client } = await connectTestCluster();
  await using operator = await runBatches(client, { resourceTtlSeconds: 1 });
  const spec = makeSpec({ models: 1, targets: ["cpu"] });
  await client.create(batchType, { metadata: { name: "plain" }, spec });
  await untilSeen(operator.compressionJobs, (all) => (all.length === 1 ? all : undefined));
  await playJob(client, "plain-0000", { status: "Completed", report: { recorded: true } });
  await untilSeen(operator.batches, (all) => (all.length === 0 ? true : undefined));
});

test("a batch whose jobs the cluster refuses says why, until it has them", { skip }, async () => {
  const { cluster, client } = await connectTestCluster();
  await using operator = await runBatches(client);
  const quota = ["quota", "none", `--namespace=${client.namespace}`];
  const hard = "--hard=count/compressionjobs.modeloptimization.dev=0";
  await cluster.kubectl(["create", ...quota, hard]);
  const spec = makeSpec({ models: 1, targets: ["cpu"] });
  await client.create(batchType, { metadata: { name: "refused" }, spec });
  const { statusReason, statusMessage } = await untilSeen(operator.batches, ([one]) =>
    one?.status?.statusMessage === undefined ? undefined : one.status,
  );
  assert.equal(statusReason, "not_submitted");
  assert.match(statusMessage ?? "", /^Cannot create compressionjobs: .* is forbidden: .*quota/);
  await cluster.kubectl(["delete", ...quota]);
  const { status } = await untilSeen(operator.batches, ([one]) =>
    one?.status?.marks === "m" ? one : undefined,
  );
  assert.deepEqual([status?.statusReason, status?.statusMessage], [undefined, undefined]);
});

test("nothing is written where nothing has changed", { skip }, async () => {
  const { client, calls } = await connectTestCluster();
  await using first = await runBatches(client);
  await client.create(batchType, { metadata: { name: "calm" }, spec: makeSpec({ models: 1 }) });
  await untilSeen(first.batches, ([one]) => (one?.status?.marks === "mm" ? one : undefined));
  await first.stop();
  const before = calls.length;
  await using second = await runBatches(client);
  // Looked at again: at the start, and for each of these.
  for (const name of ["calm-0000", "calm-0001"]) {
    await client.patch(compressionJobType, name, { metadata: { annotations: { seen: "yes" } } });
  }
  await untilSeen(second.compressionJobs, (all) =>
    all.every(({ metadata }) => metadata.annotations?.["seen"]) ? all : undefined,
  );
  await second.stop();
  const written = calls.slice(before).filter(({ verb }) => verb !== "list" && verb !== "watch");
  assert.deepEqual(
    written.map(({ verb, resource }) => `${verb} ${resource}`),
    ["patch compressionjobs", "patch compressionjobs"],
  );
});
