import assert from "node:assert/strict";
import { test } from "node:test";
import { batchQuery, maxBatchJobs, zeroCounts } from "../../src/contract/batches/batch.ts";
import { batchJobId } from "../../src/contract/id.ts";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob, openTestRecords, targets } from "./new-jobs.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const killed = { code: "worker_killed", message: "Killed" } as const;

async function complete(records: Records, jobId: string): Promise<void> {
  await records.attempts.begin(jobId, "hash");
  await records.workers.recordEvents(jobId, 1, [
    { seq: 1, at, type: "status", status: "Sharding" },
    { seq: 2, at, type: "status", status: "Optimizing" },
    { seq: 3, at, type: "result", outcome: "Completed" },
  ]);
  await records.attempts.end(jobId, 1, { error: killed, lines: [] });
}

async function fail(records: Records, jobId: string): Promise<void> {
  await records.attempts.begin(jobId, "hash");
  await records.attempts.end(jobId, 1, { error: killed, lines: [] });
}

test("batches.create() keeps 2000 jobs in the order of models × targets", async () => {
  const records = await openTestRecords();
  const jobs = Array.from({ length: maxBatchJobs / 2 }, (_, i) =>
    targets.map((target) =>
      makeNewJob({
        target,
        model: { source: "https://models.test/m.onnx", name: `model-${i}` },
        labels: { team: "x" },
      }),
    ),
  ).flat();
  const created = await records.batches.create(project, makeNewBatch({ jobs }));
  const found = await records.batches.find(project, created.id);
  assert.deepEqual(found, created);
  assert.deepEqual(
    found.jobs.map((job) => [job.model, job.target]),
    jobs.map((job) => [job.model.name, job.target.name]),
  );
  assert.equal(found.counts.Pending, maxBatchJobs);
  assert.equal(await records.batches.find("other", created.id), undefined);
  const waiting = await records.attempts.listUnfinished();
  assert.deepEqual(
    waiting.map((job) => job.jobId),
    created.jobs.map((job) => job.id),
  );
  await records.close();
});

test("batches.find() counts jobs and failed gates while jobs end", async () => {
  const records = await openTestRecords();
  const gated = makeNewJob({ gateLimits: { minCosine: 0.9 } });
  const { id, jobs } = await records.batches.create(
    project,
    makeNewBatch({ jobs: [gated, makeNewJob(), makeNewJob()] }),
  );
  const [first, second, third] = jobs.map((job) => job.id);
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  await complete(records, first);
  const running = await records.batches.find(project, id);
  assert.equal(running?.status, "Running");
  assert.deepEqual(running.counts, { ...zeroCounts, Pending: 2, Completed: 1 });
  assert.equal(running.gatesFailed, 1);
  assert.deepEqual(
    running.jobs.map((job) => job.gatesFailed),
    [true, false, false],
  );
  assert.equal(running.finishedAt, null);
  await complete(records, second);
  await complete(records, third);
  const ended = await records.batches.find(project, id);
  assert.equal(ended?.status, "Completed");
  assert.notEqual(ended.finishedAt, null);
  await records.close();
});

test("batches with failFast cancel the jobs that are left when one fails", async () => {
  const records = await openTestRecords();
  const { id, jobs } = await records.batches.create(project, makeNewBatch({ failFast: true }));
  const [failing, running, waiting] = jobs.map((job) => job.id);
  assert.ok(failing !== undefined && running !== undefined && waiting !== undefined);
  const asked: string[] = [];
  records.changes.on("cancelling", (jobId) => asked.push(jobId));
  await records.attempts.begin(running, "hash");
  await fail(records, failing);
  assert.deepEqual(asked, [running]);
  const left = await records.jobs.find(project, waiting);
  assert.deepEqual([left?.status, left?.cancelledBy], ["Cancelled", undefined]);
  assert.equal((await records.batches.find(project, id))?.status, "Cancelling");
  await records.attempts.end(running, 1, { error: killed, lines: [] });
  assert.equal((await records.batches.find(project, id))?.status, "Failed");
  await records.close();
});

test("batches without failFast go on when a job fails", async () => {
  const records = await openTestRecords();
  const { id, jobs } = await records.batches.create(project, makeNewBatch());
  await fail(records, jobs[0]?.id ?? "");
  assert.deepEqual((await records.batches.find(project, id))?.counts, {
    ...zeroCounts,
    Pending: 2,
    Failed: 1,
  });
  await records.close();
});

test("batches.cancel() cancels every job that has not ended, once", async () => {
  const records = await openTestRecords();
  const { id, jobs } = await records.batches.create(project, makeNewBatch());
  await complete(records, jobs[0]?.id ?? "");
  const cancelled = await records.batches.cancel(project, id);
  assert.equal(cancelled?.status, "Cancelled");
  assert.deepEqual(cancelled.counts, { ...zeroCounts, Completed: 1, Cancelled: 2 });
  assert.deepEqual(await records.batches.cancel(project, id), cancelled);
  assert.equal(await records.batches.cancel("other", id), undefined);
  await records.close();
});

test("batches.cancel() refuses a batch that has ended", async () => {
  const records = await openTestRecords();
  const { id, jobs } = await records.batches.create(
    project,
    makeNewBatch({ jobs: [makeNewJob()] }),
  );
  await complete(records, jobs[0]?.id ?? "");
  await assert.rejects(records.batches.cancel(project, id), { code: "batch_finished" });
  await records.close();
});

test("batches.list() pages newest first and filters by status and suite", async () => {
  const records = await openTestRecords();
  const ids: string[] = [];
  for (const suite of ["a", "b", null])
    ids.push((await records.batches.create(project, makeNewBatch({ suite }))).id);
  await records.batches.cancel(project, ids[1] ?? "");
  const list = async (query: object) => {
    const page = await records.batches.list(project, batchQuery.parse(query));
    return {
      found: page.batches.map((batch) => ids.indexOf(batch.id)),
      nextCursor: page.nextCursor,
    };
  };
  assert.deepEqual((await list({ status: ["Cancelled"] })).found, [1]);
  assert.deepEqual((await list({ status: ["Pending", "Cancelled"] })).found, [2, 1, 0]);
  assert.deepEqual((await list({ suite: "a" })).found, [0]);
  const first = await list({ limit: "2" });
  assert.deepEqual(first.found, [2, 1]);
  assert.deepEqual(await list({ limit: "2", cursor: first.nextCursor }), {
    found: [0],
    nextCursor: null,
  });
  await assert.rejects(list({ cursor: "nonsense" }), { code: "invalid_cursor" });
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
