import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { batchQuery, batchRequest } from "../../src/contract/batches/batch.ts";
import { githubReport } from "../../src/contract/batches/github-report.ts";
import type { WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { modelRoutes } from "../../src/contract/routes/model-routes.ts";
import { jobQuery } from "../../src/contract/jobs/job-lists.ts";
import type { NewBatch } from "../../src/records/jobs/insert-batch.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { testDatabase } from "../support/test-database.ts";
import { makeNewBatch, makeNewJob, readLogTexts } from "./new-jobs.ts";

const project = "default";
const dayMs = 86_400_000;
const at = "2026-03-01T00:00:00.000Z";
const sha256 = "a".repeat(64);

async function open(t: TestContext) {
  let time = Date.parse(at);
  const records = await openRecords(await testDatabase(), { now: () => new Date(time++) });
  t.after(() => records.close());
  return { records, pass: (days: number) => (time += days * dayMs) };
}

/** Has a job complete with a log and an artifact. */
async function complete(records: Records, id: string): Promise<void> {
  await records.attempts.begin(id, "hash");
  await records.jobBlobs.add(id, { sha256, bytes: 1 });
  const events: WorkerEvent[] = [
    { seq: 1, at, type: "status", status: "Sharding" },
    { seq: 2, at, type: "status", status: "Optimizing" },
    { seq: 3, at, type: "log", stream: "stdout", text: "a line" },
    {
      seq: 4,
      at,
      type: "artifact",
      artifact: { name: "model.onnx", kind: "model", bytes: 1, sha256 },
    },
    { seq: 5, at, type: "result", outcome: "Completed" },
  ];
  await records.workers.recordEvents(id, 1, events);
}

async function completedJob(records: Records, owner = project): Promise<string> {
  const { id } = await records.jobs.create(owner, makeNewJob());
  await complete(records, id);
  return id;
}

async function completedBatch(records: Records, overrides: Partial<NewBatch> = {}) {
  const jobs = [makeNewJob()];
  const batch = await records.batches.create(project, makeNewBatch({ jobs, ...overrides }));
  for (const { id } of batch.jobs) await complete(records, id);
  const [{ id: job } = { id: "" }] = batch.jobs;
  return { id: batch.id, job };
}

/** How much a project has. */
async function countLeft(records: Records, owner: string) {
  const { documents } = await records.jobs.list(owner, jobQuery.parse({}));
  const { batches } = await records.batches.list(owner, batchQuery.parse({}));
  const { models } = await records.models.list(owner, modelRoutes.listModels.query.parse({}));
  return { jobs: documents.length, batches: batches.length, models: models.length };
}

const later = (now: string) => new Date(Date.parse(now) + 100 * dayMs);

test("without a time to live nothing is deleted", async (t) => {
  const { records, pass } = await open(t);
  const id = await completedJob(records);
  pass(1000);
  await records.deleteExpired({});
  assert.equal((await records.jobs.find(project, id))?.artifacts.length, 1);
  assert.deepEqual(await readLogTexts(records, id), ["a line"]);
});

test("jobs and batches go after their time, those that have not ended stay", async (t) => {
  const { records, pass } = await open(t);
  const [old, oldBatch] = [await completedJob(records), await completedBatch(records)];
  const waiting = await records.jobs.create(project, makeNewJob());
  const waitingBatch = await records.batches.create(project, makeNewBatch());
  pass(20);
  const young = await completedJob(records);
  pass(15);
  await records.deleteExpired({ jobs: 30 * dayMs });
  assert.equal(await records.jobs.find(project, old), undefined);
  assert.equal(await records.batches.find(project, oldBatch.id), undefined);
  assert.equal(await records.jobs.find(project, oldBatch.job), undefined);
  for (const id of [waiting.id, young]) assert.ok(await records.jobs.find(project, id));
  assert.ok(await records.batches.find(project, waitingBatch.id));
  assert.deepEqual(await records.releasedBlobs.listUnused(later(at)), []);
});

test("logs and artifacts can go before their job", async (t) => {
  const { records, pass } = await open(t);
  const id = await completedJob(records);
  pass(10);
  await records.deleteExpired({ logs: 30 * dayMs, artifacts: 5 * dayMs });
  assert.deepEqual((await records.jobs.find(project, id))?.artifacts, []);
  assert.deepEqual(await readLogTexts(records, id), ["a line"]);
  assert.deepEqual(await records.releasedBlobs.listUnused(later(at)), [sha256]);
  pass(30);
  await records.deleteExpired({ logs: 30 * dayMs });
  assert.deepEqual(await readLogTexts(records, id), []);
  assert.equal((await records.jobs.find(project, id))?.status, "Completed");
});

test("a project keeps what it has for its own time, or for good", async (t) => {
  const { records, pass } = await open(t);
  const owners = [project, "short", "long"];
  const upload = { sha256, bytes: 1 };
  for (const owner of owners) {
    await completedJob(records, owner);
    const { id } = await records.batches.create(owner, makeNewBatch({ jobs: [makeNewJob()] }));
    await records.batches.cancel(owner, id);
    await records.projectBlobs.add({ project: owner, origin: null }, upload);
  }
  const all = { jobs: 30 * dayMs, models: 30 * dayMs };
  const [short, long] = [
    { jobs: 5 * dayMs, models: dayMs },
    { jobs: Infinity, models: Infinity },
  ];
  const projects = new Map([
    ["short", short],
    ["long", long],
  ]);
  const sweep = async () => {
    await records.deleteExpired({ ...all, projects });
    const left = await Promise.all(owners.map((owner) => countLeft(records, owner)));
    return Object.fromEntries(owners.map((owner, i) => [owner, left[i]]));
  };
  pass(10);
  const whole = { jobs: 2, batches: 1, models: 1 };
  const none = { jobs: 0, batches: 0, models: 0 };
  assert.deepEqual(await sweep(), { [project]: whole, short: none, long: whole });
  pass(1000);
  assert.deepEqual(await sweep(), { [project]: none, short: none, long: whole });
});

const revision = (sha: string) => ({
  sha: sha.repeat(40),
  branch: "main",
  recordBaseline: true,
});

test("the newest baseline of a branch is kept with its job and files, older ones go", async (t) => {
  const { records, pass } = await open(t);
  const first = await completedBatch(records, { suite: "nightly", revision: revision("1") });
  const second = await completedBatch(records, { suite: "nightly", revision: revision("2") });
  pass(100);
  await records.deleteExpired({ jobs: dayMs, artifacts: dayMs });
  assert.equal(await records.jobs.find(project, first.job), undefined);
  assert.equal((await records.jobs.find(project, second.job))?.artifacts.length, 1);
  const base = { sha: "2".repeat(40), branch: "main" };
  const compared = await records.batches.create(
    project,
    makeNewBatch({
      suite: "nightly",
      revision: { sha: "3".repeat(40), recordBaseline: false, base },
      jobs: [makeNewJob()],
    }),
  );
  const job = await records.jobs.find(project, compared.jobs[0]?.id ?? "");
  assert.equal(job?.baseline?.jobId, second.job);
});

test("the job that a live job is compared with is kept", async (t) => {
  const { records, pass } = await open(t);
  const first = await completedBatch(records, { suite: "nightly", revision: revision("1") });
  const base = { sha: "1".repeat(40), branch: "main" };
  const compared = { sha: "9".repeat(40), recordBaseline: false, base };
  const jobs = [makeNewJob()];
  const live = await records.batches.create(
    project,
    makeNewBatch({ suite: "nightly", revision: compared, jobs }),
  );
  await completedBatch(records, { suite: "nightly", revision: revision("2") });
  pass(100);
  await records.deleteExpired({ jobs: dayMs, artifacts: dayMs });
  assert.equal((await records.jobs.find(project, first.job))?.artifacts.length, 1);
  await assert.rejects(
    records.deletions.deleteBatch({ project, id: first.id, requireJobs: () => {} }),
    { code: "job_in_use" },
  );
  await complete(records, live.jobs[0]?.id ?? "");
  await records.deleteExpired({ jobs: dayMs });
  assert.equal(await records.jobs.find(project, first.job), undefined);
});

const settings = githubReport.parse({
  repository: "acme/models",
  sha: "1".repeat(40),
  checkName: "Models",
});

function newReport(...sources: readonly string[]) {
  const models = sources.map((source) => ({ source }));
  const request = batchRequest.parse({ models, targets: ["cpu"], labels: { team: "vision" } });
  return { settings, request, isAcceptable: false };
}

test("a batch whose report is not complete is kept, also where other jobs replaced its own", async (t) => {
  const { records, pass } = await open(t);
  const report = newReport("https://models.test/a.onnx");
  const { id } = await completedBatch(records, { report });
  const positions = [0];
  const second = await completedBatch(records, { report: { repeats: id, positions } });
  pass(100);
  await records.deleteExpired({ jobs: dayMs });
  for (const kept of [id, second.id]) {
    assert.ok(await records.batches.find(project, kept));
    await assert.rejects(
      records.deletions.deleteBatch({ project, id: kept, requireJobs: () => {} }),
      { code: "job_in_use", message: /^The report of batch "batch-/ },
    );
  }
  const [unfinished] = await records.reports.listOpen();
  assert.ok(unfinished);
  await records.reports.close(unfinished);
  await records.deleteExpired({ jobs: dayMs });
  assert.equal(await records.batches.find(project, id), undefined);
});

test("an upload stays while a report is not complete whose jobs named it", async (t) => {
  const { records, pass } = await open(t);
  await records.projectBlobs.add({ project, origin: null }, { sha256, bytes: 1 });
  const source = `upload:sha256:${sha256}`;
  const jobs = [makeNewJob(), makeNewJob({ model: { source, name: "model" } })];
  const report = newReport("https://models.test/a.onnx", source);
  await completedBatch(records, { jobs, report });
  pass(40);
  await records.deleteExpired({ models: 30 * dayMs });
  assert.equal((await countLeft(records, project)).models, 1);
  const [unfinished] = await records.reports.listOpen();
  assert.ok(unfinished);
  await records.reports.close(unfinished);
  await records.deleteExpired({ models: 30 * dayMs });
  assert.equal((await countLeft(records, project)).models, 0);
});

test("a report keeps of a request what jobs that are submitted again do not have themselves", async (t) => {
  const { records } = await open(t);
  const sources = Array.from({ length: 1000 }, (_, i) => `https://models.test/${i}.onnx`);
  const { id } = await completedBatch(records, { report: newReport(...sources) });
  const { request } = (await records.reports.find(id)) ?? {};
  assert.equal(request?.labels?.["team"], "vision");
  assert.ok(JSON.stringify(request).length < 1000);
});

test("uploads go when no job has named them for their time", async (t) => {
  const { records, pass } = await open(t);
  const owner = { project, origin: null };
  const hashes = ["b", "c", "d"].map((digit) => digit.repeat(64));
  for (const hash of hashes) await records.projectBlobs.add(owner, { sha256: hash, bytes: 1 });
  const [unused = "", waiting = "", recent = ""] = hashes;
  const model = (hash: string) => ({ source: `upload:sha256:${hash}`, name: "model" });
  await records.jobs.create(project, makeNewJob({ model: model(waiting) }));
  const early = await records.jobs.create(project, makeNewJob({ model: model(unused) }));
  await records.jobs.cancel(project, early.id);
  pass(20);
  const late = await records.jobs.create(project, makeNewJob({ model: model(recent) }));
  await records.jobs.cancel(project, late.id);
  pass(15);
  await records.deleteExpired({ models: 30 * dayMs });
  const { models } = await records.models.list(project, modelRoutes.listModels.query.parse({}));
  assert.deepEqual(models.map((upload) => upload.sha256).toSorted(), [waiting, recent]);
  assert.deepEqual(await records.releasedBlobs.listUnused(later(at)), [unused]);
  // As for a request that was checked before the upload expired.
  const code = "model_not_found";
  const job = makeNewJob({ model: model(unused) });
  await assert.rejects(records.jobs.create(project, job), { code });
  await assert.rejects(records.batches.create(project, makeNewBatch({ jobs: [job] })), { code });
});
