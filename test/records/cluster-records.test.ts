import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { keptDatabase } from "../support/test-database.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";
import { resource, sharedJob } from "./shared-job.ts";

const project = "default";

test("a job with a resource is Cancelled only when its stop is observed", async () => {
  const { records, id } = await sharedJob();
  const cancelling: string[] = [];
  records.changes.on("cancelling", (jobId) => cancelling.push(jobId));
  const attempt = (await records.attempts.beginPodAttempt(id, { podUid: "uid", part: null })) ?? 0;
  assert.equal((await records.jobs.cancel(project, id))?.status, "Cancelling");
  assert.deepEqual(cancelling, [id]);
  await records.attempts.end(id, attempt, { error: null, lines: [] });
  assert.equal((await records.jobs.find(project, id))?.status, "Cancelling");
  const stopped = {
    type: "stopped",
    reason: "resource_deleted",
    message: "The resource was deleted",
  } as const;
  assert.equal((await records.cluster.recordEvents(id, [stopped]))?.status, "Cancelled");
  assert.equal((await records.jobs.find(project, id))?.statusReason, "resource_deleted");
  await records.close();
});

test("cluster.recordEvents() shows what a job waits for, until it is worked on", async () => {
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

test("cluster.recordEvents() rebuilds a job from the status of its resource, with its times", async () => {
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

test("cluster.findJob() and cluster.findBatch() find jobs and batches with their resources", async () => {
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
  const found = await records.cluster.findBatch(batch.id);
  assert.deepEqual([found?.batch.id, found?.resource.uid], [batch.id, "seen"]);
  await records.close();
});

test("records are not younger than a resource of the second in which they were created", async (t) => {
  const database = await keptDatabase(t);
  const records = await openRecords(database, { now: () => new Date() });
  const { db, close } = await openDatabase(database, new Changes());
  await sql`update kysely_migration set timestamp = '2026-03-01T00:00:01.500Z'`.execute(db);
  await close();
  const { cluster } = records;
  assert.equal(await cluster.wereCreatedAfter("2026-03-01T00:00:02Z"), false);
  assert.equal(await cluster.wereCreatedAfter("2026-03-01T00:00:01Z"), false);
  assert.equal(await cluster.wereCreatedAfter("2026-03-01T00:00:00Z"), true);
  await records.close();
});
