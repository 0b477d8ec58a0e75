import assert from "node:assert/strict";
import { test } from "node:test";
import { assignment } from "../../src/contract/worker.ts";
import type { WorkerEvent } from "../../src/contract/worker.ts";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewJob, openTestRecords } from "./new-jobs.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const killed = { code: "worker_killed", message: "Killed" } as const;

async function recordsWithWorker() {
  const records = await openTestRecords();
  const { id } = await records.jobs.create(project, makeNewJob());
  await records.attempts.begin(id, "hash-1");
  return { records, id };
}

function logEvent(seq: number, text: string): WorkerEvent {
  return { seq, at, type: "log", stream: "stdout", text };
}

async function readLogTexts(records: Records, id: string): Promise<string[]> {
  return (await records.logs.read(id, { after: 0, limit: 1000 })).map((line) => line.text);
}

test("workers.assignment() says all that a worker needs but the service's limits", async () => {
  const { records, id } = await recordsWithWorker();
  const found = await records.workers.findAssignment(id, 1);
  const limits = { maxModelBytes: 1, allowedRoots: [], allowPrivateAddresses: false };
  const parsed = assignment.parse({ ...found, limits });
  assert.deepEqual(parsed, { ...found, limits });
  assert.deepEqual(parsed.model, {
    source: "https://models.test/detector.onnx",
    name: "detector.onnx",
  });
  assert.deepEqual([parsed.attempt, parsed.part], [1, null]);
  await records.close();
});

test("workers.attemptOf() knows a worker by its secret and its job alone", async () => {
  const { records, id } = await recordsWithWorker();
  const other = await records.jobs.create(project, makeNewJob());
  assert.equal(await records.workers.findAttemptBySecret(id, "hash-1"), 1);
  assert.equal(await records.workers.findAttemptBySecret(id, "hash-2"), undefined);
  assert.equal(await records.workers.findAttemptBySecret(other.id, "hash-1"), undefined);
  await records.close();
});

test("workers.apply() takes a job from its first line to its result", async () => {
  const { records, id } = await recordsWithWorker();
  const sha256 = "b".repeat(64);
  const answer = await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "status", status: "Sharding" },
    logEvent(2, "Fetched 12 bytes"),
    { seq: 3, at, type: "model", bytes: 12, sha256 },
    { seq: 4, at, type: "status", status: "Optimizing" },
    {
      seq: 5,
      at,
      type: "telemetry",
      telemetry: { progress: { fraction: 0.5, message: "Quantizing" } },
    },
    {
      seq: 6,
      at,
      type: "artifact",
      artifact: { name: "model.onnx", kind: "model", bytes: 3, sha256 },
    },
    { seq: 7, at, type: "result", outcome: "Completed" },
  ]);
  assert.deepEqual(answer, { nextSeq: 8, cancelled: false });
  const job = await records.jobs.find(project, id);
  assert.equal(job?.status, "Completed");
  assert.equal(job.model.actualSha256, sha256);
  assert.deepEqual(job.telemetry.progress, { fraction: 1 });
  assert.equal(job.artifacts.length, 1);
  assert.deepEqual(
    job.transitions.map((transition) => transition.status),
    ["Pending", "Sharding", "Optimizing", "Completed"],
  );
  assert.deepEqual(await records.logs.read(id, { after: 0, limit: 10 }), [
    { seq: 1, at, stream: "stdout", text: "Fetched 12 bytes" },
  ]);
  await records.close();
});

test("workers.apply() records events that are told twice once", async () => {
  const { records, id } = await recordsWithWorker();
  const events = [logEvent(1, "one"), logEvent(2, "two")];
  await records.workers.recordEvents(id, 1, events);
  const again = await records.workers.recordEvents(id, 1, [...events, logEvent(3, "three")]);
  assert.equal(again.nextSeq, 4);
  const lines = await records.logs.read(id, { after: 0, limit: 10 });
  assert.deepEqual(
    lines.map((line) => line.text),
    ["one", "two", "three"],
  );
  await records.close();
});

test("workers.apply() takes the events before a gap and says which one it waits for", async () => {
  const { records, id } = await recordsWithWorker();
  const answer = await records.workers.recordEvents(id, 1, [
    logEvent(1, "one"),
    logEvent(3, "three"),
  ]);
  assert.equal(answer.nextSeq, 2);
  assert.equal((await records.logs.read(id, { after: 0, limit: 10 })).length, 1);
  await records.close();
});

test("workers.apply() tells a worker of a cancelled job to stop, and ignores its result", async () => {
  const { records, id } = await recordsWithWorker();
  await records.jobs.cancel(project, id);
  const answer = await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "result", outcome: "Failed", error: killed },
  ]);
  assert.deepEqual(answer, { nextSeq: 2, cancelled: true });
  assert.equal((await records.jobs.find(project, id))?.status, "Cancelling");
  await records.close();
});

test("workers.apply() takes lines alone from a worker that another has replaced", async () => {
  const { records, id } = await recordsWithWorker();
  await records.attempts.end(id, 1, { error: null, lines: [] });
  await records.attempts.begin(id, "hash-2");
  const events: WorkerEvent[] = [
    logEvent(1, "late"),
    { seq: 2, at, type: "status", status: "Sharding" },
  ];
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(await records.workers.recordEvents(id, 1, events), {
      nextSeq: 3,
      cancelled: true,
    });
  }
  assert.equal((await records.jobs.find(project, id))?.status, "Pending");
  assert.deepEqual((await readLogTexts(records, id)).slice(1), ["late"]);
  await records.close();
});

test("attempts.begin() goes on with the lines of the attempt before, and says so in the log", async () => {
  const { records, id } = await recordsWithWorker();
  await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "status", status: "Sharding" },
    { seq: 2, at, type: "status", status: "Optimizing" },
    logEvent(3, "one"),
  ]);
  await records.attempts.end(id, 1, { error: null, lines: [] });
  assert.equal((await records.attempts.begin(id, "hash-2"))?.attempt, 2);
  await records.workers.recordEvents(id, 2, [
    logEvent(1, "again"),
    { seq: 2, at, type: "status", status: "Optimizing" },
    { seq: 3, at, type: "result", outcome: "Completed" },
  ]);
  assert.deepEqual(await readLogTexts(records, id), [
    "one",
    "The service restarted while the job ran: attempt 2 begins",
    "again",
  ]);
  const job = await records.jobs.find(project, id);
  assert.deepEqual(
    job?.transitions.map((transition) => transition.status),
    ["Pending", "Sharding", "Optimizing", "Completed"],
  );
  await records.close();
});

test("attempts.begin() leaves a job alone that was cancelled while it waited", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create(project, makeNewJob());
  await records.jobs.cancel(project, id);
  assert.equal(await records.attempts.begin(id, "hash"), undefined);
  await records.close();
});

test("attempts.end() fails a job whose worker told no result, and keeps its last output", async () => {
  const { records, id } = await recordsWithWorker();
  await records.attempts.end(id, 1, {
    error: killed,
    lines: [{ stream: "stderr", text: "Segmentation fault" }],
  });
  const job = await records.jobs.find(project, id);
  assert.equal(job?.status, "Failed");
  assert.deepEqual(job.error, killed);
  assert.equal(
    (await records.logs.read(id, { after: 0, limit: 1 }))[0]?.text,
    "Segmentation fault",
  );
  await records.close();
});

test("attempts.end() changes nothing of a job whose worker told its result", async () => {
  const { records, id } = await recordsWithWorker();
  const error = { code: "model_invalid", message: "The file is not a model" } as const;
  await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "result", outcome: "Failed", error },
  ]);
  await records.attempts.end(id, 1, { error: killed, lines: [{ stream: "stderr", text: "late" }] });
  assert.deepEqual((await records.jobs.find(project, id))?.error, error);
  assert.deepEqual(await records.logs.read(id, { after: 0, limit: 1 }), []);
  await records.close();
});

test("attempts.unfinished() lists what an earlier run of the service left, in order", async () => {
  const { records, id } = await recordsWithWorker();
  const waiting = await records.jobs.create(project, makeNewJob());
  const ended = await records.jobs.create(project, makeNewJob());
  await records.jobs.cancel(project, ended.id);
  await records.attempts.recordProcess(id, 1, { pid: 42, startMark: "boot:7" });
  assert.deepEqual(await records.attempts.listUnfinished(), [
    { jobId: id, attempt: 1, live: true, process: { pid: 42, startMark: "boot:7" } },
    { jobId: waiting.id, attempt: 0, live: false, process: null },
  ]);
  await records.close();
});

test("logs.read() resumes after a line", async () => {
  const { records, id } = await recordsWithWorker();
  const events = Array.from({ length: 1000 }, (_, i) => logEvent(i + 1, `line ${i + 1}`));
  await records.workers.recordEvents(id, 1, events);
  const lines = await records.logs.read(id, { after: 997, limit: 2 });
  assert.deepEqual(
    lines.map((line) => line.text),
    ["line 998", "line 999"],
  );
  await records.close();
});
