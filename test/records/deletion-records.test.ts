import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { testDatabase } from "../support/test-database.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";

const project = "default";
const suite = "nightly";

async function open(t: TestContext): Promise<Records> {
  const records = await openTestRecords();
  t.after(() => records.close());
  return records;
}

async function completedBatch(records: Records, digit: string) {
  const revision = { sha: digit.repeat(40), branch: "main", recordBaseline: true };
  const batch = makeNewBatch({ suite, revision, jobs: [makeNewJob()] });
  const { id, jobs } = await records.batches.create(project, batch);
  for (const job of jobs) await complete(records, job.id);
  return id;
}

async function complete(records: Records, id: string): Promise<void> {
  const at = new Date().toISOString();
  await records.attempts.begin(id, "hash");
  await records.workers.recordEvents(id, 1, [
    { seq: 1, at, type: "status", status: "Sharding" },
    { seq: 2, at, type: "status", status: "Optimizing" },
    { seq: 3, at, type: "result", outcome: "Completed" },
  ]);
}

/** Has the first deletion of jobs fail when they are gone, before their batch is. */
function interruptDeletion({ changes }: Records, t: TestContext): () => void {
  const end = changes.on("changed", () => {
    throw new Error("interrupted");
  });
  t.after(end);
  return end;
}

test("a job that is created while a batch is deleted is compared with none of its jobs", async (t) => {
  const records = await open(t);
  const first = await completedBatch(records, "1");
  await completedBatch(records, "2");
  const base = { sha: "1".repeat(40), branch: "main" };
  const revision = { sha: "9".repeat(40), recordBaseline: false, base };
  const deletion = records.deletions.deleteBatch({ project, id: first, requireJobs: () => {} });
  const compared = makeNewBatch({ suite, revision, jobs: [makeNewJob()] });
  const { jobs } = await records.batches.create(project, compared);
  assert.equal(await deletion, true);
  const job = await records.jobs.find(project, jobs[0]?.id ?? "");
  assert.ok(job?.baseline);
  assert.ok(await records.jobs.find(project, job.baseline.jobId));
});

test("a deletion that was interrupted goes on", async (t) => {
  const records = await open(t);
  const id = await completedBatch(records, "1");
  const deletion = { project, id, withBaselines: true, requireJobs: () => {} };
  const goOn = interruptDeletion(records, t);
  await assert.rejects(records.deletions.deleteBatch(deletion), /interrupted/);
  goOn();
  assert.deepEqual((await records.batches.find(project, id))?.jobs, []);
  assert.equal(await records.deletions.deleteBatch(deletion), true);
  assert.equal(await records.batches.find(project, id), undefined);
});

test("followers are sent deletions for a week", async (t) => {
  let now = new Date();
  const records = await openRecords(await testDatabase(), { now: () => now });
  t.after(() => records.close());
  const { id } = await records.jobs.create(project, makeNewJob());
  await records.jobs.cancel(project, id);
  await records.deletions.deleteJob({ project, id });
  const listDeleted = async () => {
    await records.changeLog.purge();
    return (await records.changeLog.listAfter({ project, origin: {} }, 0)).changes.length;
  };
  assert.equal(await listDeleted(), 1);
  now = new Date(now.getTime() + 8 * 24 * 3_600_000);
  assert.equal(await listDeleted(), 0);
});
