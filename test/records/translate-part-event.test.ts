import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnnumberedEvent, WorkerStep } from "../../src/contract/worker-protocol/messages.ts";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewJob, openTestRecords, readLogTexts } from "./new-jobs.ts";
import { completed, line, numbered, resource, sharedJob } from "./shared-job.ts";

const project = "default";
const modelSha256 = "a".repeat(64);

function progress(fraction: number): UnnumberedEvent {
  return { type: "telemetry", telemetry: { progress: { fraction } } };
}

function stageTime(optimize: number): UnnumberedEvent {
  return { type: "telemetry", telemetry: { stageSeconds: { optimize } } };
}

function share(index: number): UnnumberedEvent {
  return { type: "share", share: { index, sha256: String(index).repeat(64), bytes: 10 + index } };
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

test("pods shard, optimize side by side and assemble: only the last one completes the job", async () => {
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
    outline: null,
  });
  assert.equal((await records.jobs.find(project, id))?.status, "Optimizing");
  await records.workers.recordEvents(id, assemble, numbered(1, line("assembled"), completed));
  assert.equal((await records.jobs.find(project, id))?.status, "Completed");
  assert.deepEqual(await readLogTexts(records, id), ["pod 3", "pod 2", "assembled"]);
  await records.close();
});

test("later steps of a job work on the file that was sharded, and find file:// models where they are", async () => {
  const records = await openTestRecords();
  const upload = { sha256: modelSha256, bytes: 1 };
  await records.projectBlobs.add({ project, origin: null }, upload);
  const sources = [
    ["https://models.test/detector.onnx", `upload:sha256:${modelSha256}`],
    [`upload:sha256:${modelSha256}`, `upload:sha256:${modelSha256}`],
    ["file:///models/detector.onnx", "file:///models/detector.onnx"],
  ];
  for (const [source = "", later] of sources) {
    const model = { source, name: "detector.onnx" };
    const { id } = await records.jobs.create(project, makeNewJob({ model, resource }));
    await shardModel(records, id);
    await records.jobBlobs.add(id, upload);
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

test("later steps are given no file that the worker which names it has not stored", async () => {
  const records = await openTestRecords();
  const source = "https://models.test/detector.onnx";
  const model = { source, name: "detector.onnx" };
  const { id } = await records.jobs.create(project, makeNewJob({ model, resource }));
  await shardModel(records, id);
  const attempt = await beginPart(records, id, "pod", ["optimize", 0]);
  const assignment = await records.workers.findAssignment(id, attempt);
  assert.deepEqual(assignment?.model, { source, name: "detector.onnx" });
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

test("a pod that takes over a share leaves the others at work, and the pod before it does not count any more", async () => {
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

test("a pod that takes over the assembling starts it again, and what earlier steps reported stays", async () => {
  const { records, id } = await sharedJob({ parallelism: 1 });
  await shardModel(records, id);
  const pod = await beginPart(records, id, "pod-0", ["optimize", 0]);
  const forecast = { peakMemoryBytes: 5, diskBytes: 6 };
  const known: UnnumberedEvent = { type: "telemetry", telemetry: { forecast } };
  const events = numbered(1, known, stageTime(4), share(0), completed);
  await records.workers.recordEvents(id, pod, events);
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
    forecast,
    warnings: [],
  });
  await records.close();
});

test("a pod that takes over a finished share gets it, unless the model was sharded again", async () => {
  const { records, id } = await sharedJob();
  await shardModel(records, id);
  const first = await beginPart(records, id, "a", ["optimize", 1]);
  await records.workers.recordEvents(id, first, numbered(1, share(1), completed));
  const findShares = async (pod: string, part: [WorkerStep, number]) => {
    const attempt = await beginPart(records, id, pod, part);
    return (await records.workers.findAssignment(id, attempt))?.part?.shares;
  };
  assert.deepEqual(
    (await findShares("b", ["optimize", 1]))?.map(({ index }) => index),
    [1],
  );
  assert.deepEqual(await findShares("c", ["optimize", 0]), []);
  await beginPart(records, id, "d", ["shard", 0]);
  assert.deepEqual(await findShares("e", ["optimize", 1]), []);
  await records.close();
});

test("a share that fails fails the job, and stops the pods of the other shares", async () => {
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

test("what pods made for one another goes when the job has ended, and its artifacts stay", async () => {
  const { records, id } = await sharedJob();
  await shardModel(records, id);
  const [optimizing, other] = [
    await beginPart(records, id, "a", ["optimize", 0]),
    await beginPart(records, id, "b", ["optimize", 1]),
  ];
  const artifact = { name: "model.onnx", kind: "model", bytes: 1, sha256: modelSha256 } as const;
  await records.jobBlobs.add(id, artifact);
  for (const index of [0, 1]) {
    await records.jobBlobs.add(id, { sha256: String(index).repeat(64), bytes: 10 + index });
  }
  const begun: UnnumberedEvent = { type: "status", status: "Optimizing" };
  await records.workers.recordEvents(id, optimizing, numbered(1, begun, share(0), completed));
  await records.workers.recordEvents(id, other, numbered(1, begun, share(1), completed));
  assert.equal(await records.usage.storedBytes(project), 22);
  const last = await beginPart(records, id, "last", ["assemble", 0]);
  const events = numbered(1, { type: "artifact", artifact }, completed);
  await records.workers.recordEvents(id, last, events);
  assert.equal((await records.jobs.find(project, id))?.status, "Completed");
  assert.equal(await records.usage.storedBytes(project), 1);
  const later = new Date(Date.now() + 86_400_000);
  const released = [0, 1].map((index) => String(index).repeat(64));
  assert.deepEqual(await records.releasedBlobs.listUnused(later), released);
  await records.close();
});
