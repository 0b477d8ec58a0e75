import assert from "node:assert/strict";
import { test } from "node:test";
import { assignment, type WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { makeNewJob, readLogTexts } from "./new-jobs.ts";
import { logEvent, recordsWithWorker } from "./recorded-worker.ts";
import { completed, line, numbered, sharedJob } from "./shared-job.ts";
import { readLog } from "./read-log.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const killed = { code: "worker_killed", message: "Killed" } as const;

test("workers.findAssignment() returns all that a worker needs except limits and earlier costs", async () => {
  const { records, id } = await recordsWithWorker();
  const found = await records.workers.findAssignment(id, 1);
  const limits = { maxModelBytes: 1, allowedRoots: [], allowPrivateAddresses: false };
  const whole = { ...found, limits, earlierCosts: [] };
  const parsed = assignment.parse(whole);
  assert.deepEqual(parsed, whole);
  assert.deepEqual(parsed.model, {
    source: "https://models.test/detector.onnx",
    name: "detector.onnx",
  });
  assert.deepEqual([parsed.attempt, parsed.part], [1, null]);
  await records.close();
});

test("workers.findAttemptBySecret() knows a worker only by its secret and its job", async () => {
  const { records, id } = await recordsWithWorker();
  const other = await records.jobs.create(project, makeNewJob());
  assert.equal(await records.workers.findAttemptBySecret(id, "hash-1"), 1);
  assert.equal(await records.workers.findAttemptBySecret(id, "hash-2"), undefined);
  assert.equal(await records.workers.findAttemptBySecret(other.id, "hash-1"), undefined);
  await records.close();
});

test("workers.recordEvents() takes a job from its first line to its result", async () => {
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
  assert.deepEqual(await readLog(records, id), [
    { seq: 1, at, stream: "stdout", text: "Fetched 12 bytes" },
  ]);
  await records.close();
});

test("workers.recordEvents() records an event once that comes twice", async () => {
  const { records, id } = await recordsWithWorker();
  const events = [logEvent(1, "one"), logEvent(2, "two")];
  await records.workers.recordEvents(id, 1, events);
  const again = await records.workers.recordEvents(id, 1, [...events, logEvent(3, "three")]);
  assert.equal(again.nextSeq, 4);
  const lines = await readLog(records, id);
  assert.deepEqual(
    lines.map((line) => line.text),
    ["one", "two", "three"],
  );
  await records.close();
});

test("workers.recordEvents() records the events before a gap and names the next one", async () => {
  const { records, id } = await recordsWithWorker();
  const answer = await records.workers.recordEvents(id, 1, [
    logEvent(1, "one"),
    logEvent(3, "three"),
  ]);
  assert.equal(answer.nextSeq, 2);
  assert.equal((await readLog(records, id)).length, 1);
  await records.close();
});

test("workers.recordEvents() stops the worker of a cancelled job and ignores its result", async () => {
  const { records, id } = await recordsWithWorker();
  await records.jobs.cancel(project, id);
  const answer = await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "result", outcome: "Failed", error: killed },
  ]);
  assert.deepEqual(answer, { nextSeq: 2, cancelled: true });
  assert.equal((await records.jobs.find(project, id))?.status, "Cancelling");
  await records.close();
});

test("workers.recordEvents() records only lines of a worker that another has replaced", async () => {
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

test("workers.recordFinalEvents() records what a pod's log still has, each line once, and logs what is lost", async () => {
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

test("workers.recordFinalEvents() gives a job the result that its pod could not report", async () => {
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
