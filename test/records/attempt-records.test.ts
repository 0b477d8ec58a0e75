import assert from "node:assert/strict";
import { test } from "node:test";
import { makeNewJob, openTestRecords, readLogTexts } from "./new-jobs.ts";
import { logEvent, recordsWithWorker } from "./recorded-worker.ts";
import { line, numbered, sharedJob } from "./shared-job.ts";
import { readLog } from "./read-log.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const killed = { code: "worker_killed", message: "Killed" } as const;

test("attempts.begin() keeps the lines of the attempt before and logs the restart", async () => {
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
    "Another worker takes over: attempt 2 begins",
    "again",
  ]);
  const job = await records.jobs.find(project, id);
  assert.deepEqual(
    job?.transitions.map((transition) => transition.status),
    ["Pending", "Sharding", "Optimizing", "Completed"],
  );
  await records.close();
});

test("attempts.begin() counts attempts before it that failed, not those that were disrupted", async () => {
  const { records, id } = await recordsWithWorker();
  const end = { error: null, lines: [] };
  await records.attempts.end(id, 1, { ...end, disruption: "service_stopped" });
  assert.equal((await records.attempts.begin(id, "hash-2"))?.failedAttempts, 0);
  await records.attempts.end(id, 2, end);
  assert.equal((await records.attempts.begin(id, "hash-3"))?.failedAttempts, 1);
  await records.close();
});

test("attempts.begin() leaves a job alone that was cancelled while it waited", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create(project, makeNewJob());
  await records.jobs.cancel(project, id);
  assert.equal(await records.attempts.begin(id, "hash"), undefined);
  await records.close();
});

test("attempts.end() fails a job whose worker reported no result, and keeps its last output", async () => {
  const { records, id } = await recordsWithWorker();
  await records.attempts.end(id, 1, {
    error: killed,
    lines: [{ stream: "stderr", text: "Segmentation fault" }],
  });
  const job = await records.jobs.find(project, id);
  assert.equal(job?.status, "Failed");
  assert.deepEqual(job.error, killed);
  assert.equal((await readLog(records, id))[0]?.text, "Segmentation fault");
  await records.close();
});

test("attempts.end() changes nothing of a job whose worker reported its result", async () => {
  const { records, id } = await recordsWithWorker();
  const error = { code: "model_invalid", message: "The file is not a model" } as const;
  await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "result", outcome: "Failed", error },
  ]);
  await records.attempts.end(id, 1, { error: killed, lines: [{ stream: "stderr", text: "late" }] });
  assert.deepEqual((await records.jobs.find(project, id))?.error, error);
  assert.deepEqual(await readLog(records, id), []);
  await records.close();
});

test("attempts.listUnfinished() lists the jobs of an earlier run of the service, in order", async () => {
  const { records, id } = await recordsWithWorker();
  const waiting = await records.jobs.create(project, makeNewJob());
  const ended = await records.jobs.create(project, makeNewJob());
  await records.jobs.cancel(project, ended.id);
  await records.attempts.recordProcess(id, 1, { pid: 42, startMark: "boot:7" });
  const own = { project, replica: records.replica.id };
  assert.deepEqual(await records.attempts.listUnfinished(), [
    { jobId: id, ...own, attempt: 1, live: true, process: { pid: 42, startMark: "boot:7" } },
    { jobId: waiting.id, project, replica: null, attempt: 0, live: false, process: null },
  ]);
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
