import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import test, { type TestContext } from "node:test";
import { batchQuery } from "../../src/contract/batches/batch.ts";
import { jobCountsQuery, jobQuery } from "../../src/contract/jobs/job-lists.ts";
import { modelRoutes } from "../../src/contract/routes/model-routes.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob } from "./new-jobs.ts";

const now = () => new Date();
const project = "default";
const id = `job-${"0".repeat(26)}`;
const batch = `batch-${"0".repeat(26)}`;
const jobCursor = Buffer.from(id).toString("base64url");
const batchCursor = Buffer.from(batch).toString("base64url");
const at = "2026-01-01T00:00:00.000Z";
const modelCursor = Buffer.from(`${at} ${"a".repeat(64)} `).toString("base64url");

const jobFilters: Record<string, unknown>[] = [
  {},
  { cursor: jobCursor },
  { status: ["Failed"] },
  { status: ["Failed", "Completed"], cursor: jobCursor },
  { kind: "quantize" },
  { batch },
  { target: "cpu" },
  { model: "detector.onnx" },
  { label: ["team"] },
  { label: ["team=vision"] },
  { label: ["team=vision", "env=ci"], cursor: jobCursor },
  { createdAfter: at, createdBefore: at },
  { kind: "compress", target: "cpu", status: ["Completed"], model: "a", label: ["team"] },
];

const origin = { repository: "1", commit: "a".repeat(40) };

const lists: [string, (records: Records) => Promise<unknown>][] = [
  ...jobFilters.map((filter): [string, (records: Records) => Promise<unknown>] => [
    `jobs ${JSON.stringify(filter)}`,
    ({ jobs }) => jobs.list(project, jobQuery.parse(filter)),
  ]),
  ["jobs of a commit", ({ jobs }) => jobs.list(project, jobQuery.parse({}), origin)],
  ...[{}, { status: ["Failed"] }, { suite: "nightly" }, { cursor: batchCursor }].map(
    (filter): [string, (records: Records) => Promise<unknown>] => [
      `batches ${JSON.stringify(filter)}`,
      ({ batches }) => batches.list(project, batchQuery.parse(filter)),
    ],
  ),
  ["batches of a commit", ({ batches }) => batches.list(project, batchQuery.parse({}), origin)],
  ...[{}, { cursor: modelCursor }].map(
    (filter): [string, (records: Records) => Promise<unknown>] => [
      `models ${JSON.stringify(filter)}`,
      ({ models }) => models.list(project, modelRoutes.listModels.query.parse(filter)),
    ],
  ),
  ...[{}, { label: ["team"] }, { model: "a" }, { batch, target: "cpu" }].map(
    (filter): [string, (records: Records) => Promise<unknown>] => [
      `counts ${JSON.stringify(filter)}`,
      ({ jobs }) => jobs.count(project, jobCountsQuery.parse(filter)),
    ],
  ),
  ["changes", ({ changeLog }) => changeLog.listAfter({ project, origin: {} }, 1)],
  ["deletions to forget", ({ changeLog }) => changeLog.purge()],
  ["earlier log lines", ({ logs }) => logs.readPageBefore(id, { after: 0, before: 9, limit: 5 })],
  ["log lines", ({ logs }) => logs.readPage(id, 5)],
  ["logs to pack", ({ logs }) => logs.pack()],
  ["a job", ({ jobs }) => jobs.find(project, id)],
  ["a batch", ({ batches }) => batches.find(project, batch)],
  ["blobs to delete", ({ releasedBlobs }) => releasedBlobs.listUnused(new Date())],
];

const week = 7 * 24 * 3_600_000;

/** A batch and a job that have ended, with what there is of them. */
async function createEnded({ jobs, batches, attempts }: Records) {
  const job = await jobs.create(project, makeNewJob());
  await attempts.begin(job.id, "hash");
  await attempts.end(job.id, 1, { error: { code: "worker_killed", message: "" }, lines: [] });
  const made = await batches.create(project, makeNewBatch({ jobs: [makeNewJob()] }));
  for (const one of made.jobs) await jobs.cancel(project, one.id);
  return { jobId: job.id, batchId: made.id };
}

const deletions: [string, (records: Records) => Promise<unknown>][] = [
  [
    "a job to delete",
    async (records) => {
      const { jobId } = await createEnded(records);
      assert.ok(await records.deletions.deleteJob({ project, id: jobId }));
    },
  ],
  [
    "a batch to delete",
    async (records) => {
      const { batchId: id } = await createEnded(records);
      const requireJobs = () => {};
      assert.ok(await records.deletions.deleteBatch({ project, id, requireJobs }));
    },
  ],
  [
    "what has expired",
    async (records) => {
      const { jobId } = await createEnded(records);
      for (const kind of ["logs", "artifacts", "models", "jobs"] as const) {
        await records.deleteExpired({ [kind]: -week });
      }
      assert.equal(await records.jobs.find(project, jobId), undefined);
    },
  ],
  ["keys to forget", ({ idempotency }) => idempotency.purge()],
  ["identities to forget", ({ identities }) => identities.purge()],
  ["deliveries to forget", ({ webhookDeliveries }) => webhookDeliveries.purge()],
  ["a project's usage", ({ usage }) => usage.storedBytes(project)],
];

/** Everything that a query reads, as SQLite plans it. */
async function explain(t: TestContext, run: (records: Records) => Promise<unknown>) {
  const folder = await mkdtemp(join(tmpdir(), "indexes-"));
  const path = join(folder, "records.db");
  const records = await openRecords(path, { now });
  const database = new DatabaseSync(path);
  t.after(async () => {
    database.close();
    await records.close();
    await rm(folder, { recursive: true });
  });
  const prepare = t.mock.method(DatabaseSync.prototype, "prepare");
  await run(records);
  const queries = prepare.mock.calls.map((call) => String(call.arguments[0]));
  prepare.mock.restore();
  return queries.flatMap((query) => {
    const values: SQLInputValue[] = Array.from(query.matchAll(/\?/g), () => null);
    const plan = database.prepare(`explain query plan ${query}`).all(...values);
    return plan.map(({ detail }) => String(detail));
  });
}

// A page takes as long among a million rows as among a hundred: pages are read along an index, and
// so are rows that are deleted. `found` is what one index scan found, as far as it is counted.
for (const [name, list] of lists) {
  test(`${name} take no longer among more rows: no table is read whole, and nothing is sorted`, async (t) => {
    const steps = await explain(t, list);
    assert.notEqual(steps.length, 0);
    const bad = steps.filter((step) => /^SCAN (?!change_counter|found)|TEMP B-TREE/.test(step));
    assert.deepEqual(bad, []);
  });
}

/** What is read whole though it grows: open reports, and uploads once in a sweep. */
const readWhole = "github_reports USING INDEX github_reports_open|project_blobs USING INDEX";
for (const [name, remove] of deletions) {
  test(`${name}: the rest of the rows is not read`, async (t) => {
    const steps = await explain(t, remove);
    assert.notEqual(steps.length, 0);
    const scans = new RegExp(`^SCAN (?!change_counter|entry|${readWhole})`);
    assert.deepEqual(
      steps.filter((step) => scans.test(step)),
      [],
    );
  });
}
