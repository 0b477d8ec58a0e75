import assert from "node:assert/strict";
import { test } from "node:test";
import { batchJobId } from "../../src/contract/id.ts";
import { defaultRecipe } from "../../src/contract/resolve-recipe.ts";
import type { UnnumberedEvent, WorkerEvent, WorkerStep } from "../../src/contract/worker.ts";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const resource = { namespace: "models", name: "detector", uid: null };
const modelSha256 = "a".repeat(64);

function numbered(first: number, ...events: readonly UnnumberedEvent[]): WorkerEvent[] {
  return events.map((event, i) => ({ ...event, seq: first + i, at }));
}

function line(text: string): UnnumberedEvent {
  return { type: "log", stream: "stdout", text };
}

function progress(fraction: number): UnnumberedEvent {
  return { type: "telemetry", telemetry: { progress: { fraction } } };
}

function stageTime(optimize: number): UnnumberedEvent {
  return { type: "telemetry", telemetry: { stageSeconds: { optimize } } };
}

function share(index: number): UnnumberedEvent {
  return { type: "share", share: { index, sha256: String(index).repeat(64), bytes: 10 + index } };
}

const completed: UnnumberedEvent = { type: "result", outcome: "Completed" };

/** Records of one job that a resource holds and that pods share. */
async function sharedJob({ parallelism = 2 } = {}) {
  const records = await openTestRecords();
  const recipe = { ...defaultRecipe, parallelism };
  const { id } = await records.jobs.create(project, makeNewJob({ recipe, resource }));
  return { records, id };
}

async function beginPart(
  records: Records,
  id: string,
  podUid: string,
  [step, index]: [WorkerStep, number],
) {
  return (await records.attempts.beginPodAttempt(id, { podUid, part: { step, index } })) ?? 0;
}

async function readProgress(records: Records, id: string): Promise<string | undefined> {
  return (await records.jobs.find(project, id))?.telemetry.progress.fraction.toFixed(3);
}

async function readLogTexts(records: Records, id: string): Promise<string[]> {
  return (await records.logs.read(id, { after: 0, limit: 1000 })).map(({ text }) => text);
}

async function shardModel(records: Records, id: string): Promise<void> {
  const attempt = await beginPart(records, id, "pod-shard", ["shard", 0]);
  const events = numbered(
    1,
    { type: "status", status: "Sharding" },
    { type: "model", bytes: 9, sha256: modelSha256 },
  );
  await records.workers.recordEvents(id, attempt, [...events, ...numbered(3, completed)]);
  await records.attempts.end(id, attempt, { error: null, lines: [] });
}

test("pods shard, optimize side by side and assemble: the last one alone completes the job", async () => {
  const { records, id } = await sharedJob();
  await shardModel(records, id);
  assert.equal((await records.jobs.find(project, id))?.status, "Sharding");
  const pods = [
    await beginPart(records, id, "pod-0", ["optimize", 0]),
    await beginPart(records, id, "pod-1", ["optimize", 1]),
  ];
  for (const [index, attempt] of pods.toReversed().entries()) {
    const events = numbered(
      1,
      { type: "status", status: "Optimizing" },
      line(`pod ${attempt}`),
      share(1 - index),
      completed,
    );
    assert.deepEqual(await records.workers.recordEvents(id, attempt, events), {
      nextSeq: 5,
      cancelled: false,
    });
  }
  const assemble = await beginPart(records, id, "pod-last", ["assemble", 0]);
  const assignment = await records.workers.findAssignment(id, assemble);
  assert.deepEqual(assignment?.part, {
    step: "assemble",
    index: 0,
    shares: [
      { index: 0, sha256: "0".repeat(64), bytes: 10 },
      { index: 1, sha256: "1".repeat(64), bytes: 11 },
    ],
  });
  assert.equal((await records.jobs.find(project, id))?.status, "Optimizing");
  await records.workers.recordEvents(id, assemble, numbered(1, line("assembled"), completed));
  assert.equal((await records.jobs.find(project, id))?.status, "Completed");
  assert.deepEqual(await readLogTexts(records, id), ["pod 3", "pod 2", "assembled"]);
  await records.close();
});

test("later steps of a job work on the file that was sharded, and find file:// models where they are", async () => {
  const records = await openTestRecords();
  const sources = [
    ["https://models.test/detector.onnx", `upload:sha256:${modelSha256}`],
    [`upload:sha256:${modelSha256}`, `upload:sha256:${modelSha256}`],
    ["file:///models/detector.onnx", "file:///models/detector.onnx"],
  ];
  for (const [source = "", later] of sources) {
    const model = { source, name: "detector.onnx" };
    const { id } = await records.jobs.create(project, makeNewJob({ model, resource }));
    await shardModel(records, id);
    const attempt = await beginPart(records, id, "pod", ["optimize", 0]);
    const assignment = await records.workers.findAssignment(id, attempt);
    assert.deepEqual(assignment?.model, {
      source: later,
      name: "detector.onnx",
      sha256: modelSha256,
    });
  }
  await records.close();
});

test("the progress of a job that pods share is that of its shares together", async () => {
  const { records, id } = await sharedJob({ parallelism: 4 });
  const shard = await beginPart(records, id, "pod-shard", ["shard", 0]);
  await records.workers.recordEvents(id, shard, numbered(1, progress(1)));
  assert.equal(await readProgress(records, id), "0.150");
  const first = await beginPart(records, id, "pod-0", ["optimize", 0]);
  const second = await beginPart(records, id, "pod-1", ["optimize", 1]);
  await records.workers.recordEvents(id, first, numbered(1, completed));
  await records.workers.recordEvents(id, second, numbered(1, progress(0.5), stageTime(3)));
  assert.equal(await readProgress(records, id), (0.15 + 0.45 * (1.5 / 4)).toFixed(3));
  await records.workers.recordEvents(id, first, numbered(2, stageTime(2)));
  assert.deepEqual((await records.jobs.find(project, id))?.telemetry.stageSeconds, { optimize: 3 });
  const assemble = await beginPart(records, id, "pod-last", ["assemble", 0]);
  await records.workers.recordEvents(id, assemble, numbered(1, progress(0.5)));
  assert.equal(await readProgress(records, id), "0.800");
  await records.close();
});

test("a pod that takes over a share leaves the others at work, and the pod before it is not heard any more", async () => {
  const { records, id } = await sharedJob();
  await shardModel(records, id);
  const [lost, other] = [
    await beginPart(records, id, "a", ["optimize", 0]),
    await beginPart(records, id, "b", ["optimize", 1]),
  ];
  await records.workers.recordEvents(id, lost, numbered(1, progress(0.9)));
  await records.attempts.end(id, lost, { error: null, lines: [] });
  const next = await beginPart(records, id, "c", ["optimize", 0]);
  assert.equal(
    (await records.workers.recordEvents(id, other, numbered(1, progress(0)))).cancelled,
    false,
  );
  assert.equal(await readProgress(records, id), "0.150");
  const late = await records.workers.recordEvents(id, lost, numbered(2, line("late"), share(0)));
  assert.deepEqual(late, { nextSeq: 4, cancelled: true });
  assert.equal(await records.workers.findAssignment(id, lost), undefined);
  assert.notEqual(await records.workers.findAssignment(id, next), undefined);
  const assemble = await beginPart(records, id, "last", ["assemble", 0]);
  assert.deepEqual((await records.workers.findAssignment(id, assemble))?.part?.shares, []);
  assert.deepEqual(await readLogTexts(records, id), [
    `Another pod takes over share 1: attempt ${next} begins`,
    "late",
  ]);
  await records.close();
});

test("a pod that takes over the assembling begins it anew, and what the shares told stays", async () => {
  const { records, id } = await sharedJob({ parallelism: 1 });
  await shardModel(records, id);
  const pod = await beginPart(records, id, "pod-0", ["optimize", 0]);
  await records.workers.recordEvents(id, pod, numbered(1, stageTime(4), share(0), completed));
  const lost = await beginPart(records, id, "last", ["assemble", 0]);
  const file = { name: "model.onnx", kind: "model", bytes: 3, sha256: modelSha256 } as const;
  const evaluated = {
    stageSeconds: { evaluate: 2 },
    size: { originalBytes: 9, resultBytes: 3, ratio: 1 / 3, predicted: false },
  };
  await records.workers.recordEvents(
    id,
    lost,
    numbered(1, { type: "telemetry", telemetry: evaluated }, { type: "artifact", artifact: file }),
  );
  await beginPart(records, id, "next", ["assemble", 0]);
  const job = await records.jobs.find(project, id);
  assert.deepEqual(job?.artifacts, []);
  assert.deepEqual(job.telemetry, {
    progress: { fraction: 0.6 },
    stageSeconds: { optimize: 4 },
    warnings: [],
  });
  await records.close();
});

test("a share that fails fails the job, and the pods beside it are told to stop", async () => {
  const { records, id } = await sharedJob();
  await shardModel(records, id);
  const [failing, other] = [
    await beginPart(records, id, "a", ["optimize", 0]),
    await beginPart(records, id, "b", ["optimize", 1]),
  ];
  const error = { code: "out_of_memory", message: "Full" } as const;
  await records.workers.recordEvents(
    id,
    failing,
    numbered(1, { type: "result", outcome: "Failed", error }),
  );
  assert.equal((await records.jobs.find(project, id))?.status, "Failed");
  assert.equal(
    (await records.workers.recordEvents(id, other, numbered(1, line("stopping")))).cancelled,
    true,
  );
  assert.deepEqual(await readLogTexts(records, id), ["stopping"]);
  await records.close();
});

test("a pod that asks again goes on with its attempt, also when it was ended", async () => {
  const { records, id } = await sharedJob();
  const pod = { podUid: "uid", part: null };
  assert.equal(await records.attempts.beginPodAttempt(id, pod), 1);
  await records.workers.recordEvents(id, 1, numbered(1, line("one")));
  assert.equal(await records.attempts.beginPodAttempt(id, pod), 1);
  assert.deepEqual(await records.attempts.findPodAttempt(id, "uid"), {
    attempt: 1,
    nextSeq: 2,
    ended: false,
  });
  assert.deepEqual(await records.attempts.listLivePods(), [
    { jobId: id, attempt: 1, podUid: "uid" },
  ]);
  await records.attempts.end(id, 1, { error: null, lines: [] });
  assert.equal(await records.attempts.beginPodAttempt(id, pod), 1);
  assert.deepEqual(await records.attempts.findPodAttempt(id, "uid"), {
    attempt: 1,
    nextSeq: 2,
    ended: true,
  });
  assert.deepEqual(await records.attempts.listLivePods(id), []);
  await records.close();
});

test("a job that is being cancelled gets no new pod, but keeps the log of one that never asked for its work", async () => {
  const { records, id } = await sharedJob();
  await records.jobs.cancel(project, id);
  const pod = { podUid: "uid", part: null };
  assert.equal(await records.attempts.beginPodAttempt(id, pod), undefined);
  const attempt = (await records.attempts.ensurePodAttempt(id, pod)) ?? 0;
  await records.workers.recordFinalEvents(
    id,
    attempt,
    numbered(1, line("started"), { type: "status", status: "Sharding" }),
  );
  assert.equal((await records.jobs.find(project, id))?.status, "Cancelling");
  assert.deepEqual(await readLogTexts(records, id), ["started"]);
  await records.close();
});

test("a job that a resource holds is Cancelled only when it is seen to be stopped", async () => {
  const { records, id } = await sharedJob();
  const cancelling: string[] = [];
  records.changes.onCancelling((jobId) => cancelling.push(jobId));
  const attempt = (await records.attempts.beginPodAttempt(id, { podUid: "uid", part: null })) ?? 0;
  assert.equal((await records.jobs.cancel(project, id))?.status, "Cancelling");
  assert.deepEqual(cancelling, [id]);
  await records.attempts.end(id, attempt, { error: null, lines: [] });
  assert.equal((await records.jobs.find(project, id))?.status, "Cancelling");
  const gone = {
    type: "stopped",
    reason: "resource_deleted",
    message: "The resource was deleted",
  } as const;
  assert.equal((await records.cluster.recordEvents(id, [gone]))?.status, "Cancelled");
  assert.equal((await records.jobs.find(project, id))?.statusReason, "resource_deleted");
  await records.close();
});

test("workers.capture() takes what a pod's log still has, each line once, and says what is lost", async () => {
  const { records, id } = await sharedJob();
  const attempt = (await records.attempts.beginPodAttempt(id, { podUid: "uid", part: null })) ?? 0;
  await records.workers.recordEvents(id, attempt, numbered(1, line("one"), line("two")));
  await records.attempts.end(id, attempt, { error: null, lines: [] });
  const rest = [...numbered(2, line("two")), ...numbered(5, line("five"), line("six"))];
  for (let i = 0; i < 2; i++)
    assert.equal((await records.workers.recordFinalEvents(id, attempt, rest)).nextSeq, 7);
  assert.deepEqual(await readLogTexts(records, id), [
    "one",
    "two",
    "(2 events of the worker were lost while the service could not be reached)",
    "five",
    "six",
  ]);
  await records.close();
});

test("workers.capture() gives a job the result that its pod could not tell", async () => {
  const { records, id } = await sharedJob();
  const attempt = (await records.attempts.beginPodAttempt(id, { podUid: "uid", part: null })) ?? 0;
  await records.attempts.end(id, attempt, { error: null, lines: [] });
  const events = numbered(
    1,
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    completed,
  );
  await records.workers.recordFinalEvents(id, attempt, events);
  assert.equal((await records.jobs.find(project, id))?.status, "Completed");
  await records.close();
});

test("lines that come after a job's end are recorded all the same, each once", async () => {
  const { records, id } = await sharedJob();
  const attempt = (await records.attempts.beginPodAttempt(id, { podUid: "uid", part: null })) ?? 0;
  const error = { code: "deadline_exceeded", message: "Late" } as const;
  await records.cluster.recordEvents(id, [{ type: "failure", error }]);
  for (let i = 0; i < 2; i++)
    await records.workers.recordEvents(id, attempt, numbered(1, line("last words"), completed));
  assert.deepEqual(await readLogTexts(records, id), ["last words"]);
  assert.deepEqual((await records.jobs.find(project, id))?.error, error);
  await records.close();
});

test("held.observe() says what a job waits for, until it is worked on", async () => {
  const { records, id } = await sharedJob();
  const waiting = {
    type: "waiting",
    reason: "unschedulable",
    message: "No node with 2 nvidia.com/gpu",
  } as const;
  const job = await records.cluster.recordEvents(id, [waiting]);
  assert.deepEqual(
    [job?.status, job?.statusReason, job?.statusMessage],
    ["Pending", waiting.reason, waiting.message],
  );
  assert.equal(job?.transitions.length, 1);
  const working = await records.cluster.recordEvents(id, [
    { type: "status", status: "Sharding" },
    waiting,
  ]);
  assert.equal(working?.statusReason, "sharding");
  await records.close();
});

test("held.observe() rebuilds a job from what its resource says, with the times that it says", async () => {
  const records = await openTestRecords();
  const id = `job-${"1".repeat(26)}`;
  const createdAt = "2026-02-01T00:00:00.000Z";
  await records.jobs.create(project, makeNewJob({ id, createdAt, resource }));
  const [sharding, optimizing, end] = ["01", "02", "03"].map(
    (minute) => `2026-02-01T00:${minute}:00.000Z`,
  );
  const job = await records.cluster.recordEvents(id, [
    { type: "status", status: "Sharding", at: sharding },
    { type: "status", status: "Optimizing", at: optimizing },
    { type: "result", outcome: "Completed", at: end },
  ]);
  assert.deepEqual(
    job?.transitions.map((transition) => transition.at),
    [createdAt, sharding, optimizing, end],
  );
  assert.deepEqual(
    [job.id, job.createdAt, job.startedAt, job.finishedAt],
    [id, createdAt, sharding, end],
  );
  await records.close();
});

test("held jobs and batches are found with the resource that holds them", async () => {
  const { records, id } = await sharedJob();
  await records.jobs.create(project, makeNewJob());
  assert.deepEqual((await records.cluster.findJob(id))?.resource, resource);
  assert.deepEqual(await records.cluster.listUnfinishedJobs(), [id]);
  assert.equal((await records.attempts.listUnfinished()).length, 1);
  await records.cluster.linkJobResource(id, { ...resource, uid: "seen" });
  assert.equal((await records.cluster.findJob(id))?.resource.uid, "seen");
  const batch = await records.batches.create(
    project,
    makeNewBatch({ id: `batch-${"2".repeat(26)}`, resource }),
  );
  await records.cluster.linkBatchResource(batch.id, { ...resource, uid: "seen" });
  const held = await records.cluster.findBatch(batch.id);
  assert.deepEqual([held?.batch.id, held?.resource.uid], [batch.id, "seen"]);
  await records.close();
});

test("the jobs of a batch have ids that follow from its own", async () => {
  const records = await openTestRecords();
  const batch = await records.batches.create(project, makeNewBatch());
  assert.deepEqual(
    batch.jobs.map((job) => job.id),
    [0, 1, 2].map((index) => batchJobId(batch.id, index)),
  );
  await records.close();
});

test("changes.onChanged() hears of every job and batch, until it is ended", async () => {
  const records = await openTestRecords();
  const changed = new Set<string>();
  const stop = records.changes.onChanged((id) => changed.add(id));
  const batch = await records.batches.create(project, makeNewBatch());
  const [first, second] = batch.jobs;
  await records.jobs.cancel(project, first?.id ?? "");
  assert.deepEqual(changed, new Set([first?.id, batch.id]));
  stop();
  await records.jobs.cancel(project, second?.id ?? "");
  assert.equal(changed.has(second?.id ?? ""), false);
  await records.close();
});
