import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Kysely, sql } from "kysely";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import type { Schema } from "../../src/records/database/schema.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { keptDatabase } from "../support/test-database.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";

const at = "2026-03-01T00:00:00.000Z";
const projects = ["default", "team-a"];
const error = { code: "worker_crashed", message: "It crashed" } as const;
const sha256 = "a".repeat(64);
const audit = { project: "default", action: "test", tokenId: null, tokenName: "test" };
const failed = { isDelivered: false, responseStatus: 500, error: "It failed", isGone: false };

type Step = (records: Records, job: { readonly project: string; readonly id: string }) => unknown;

/** What can happen to a project or to one of its jobs. */
const steps: Readonly<Record<string, Step>> = {
  create: ({ jobs }, { project }) => jobs.create(project, makeNewJob()),
  createBatch: ({ batches }, { project }) =>
    batches.create(project, makeNewBatch({ failFast: true })),
  begin: ({ attempts }, { id }) => attempts.begin(id, "hash"),
  work: ({ workers }, { id }) =>
    workers.recordEvents(id, 1, [{ seq: 1, at, type: "status", status: "Sharding" }]),
  interrupt: ({ cluster }, { id }) =>
    cluster.recordEvents(id, [
      { type: "waiting", reason: "unschedulable", message: "", interrupts: true },
    ]),
  fail: ({ attempts }, { id }) => attempts.end(id, 1, { error, lines: [] }),
  cancel: ({ jobs }, { project, id }) => jobs.cancel(project, id),
  delete: ({ deletions }, { project, id }) => deletions.deleteJob({ project, id }),
  expire: (records) => records.deleteExpired({ jobs: 5, artifacts: 3, models: 4 }),
  upload: ({ projectBlobs }, { project }) =>
    projectBlobs.add({ project, origin: null }, { sha256, bytes: 100 }),
  deleteUpload: ({ models }, { project }) => models.delete(project, sha256, audit),
  storeArtifact: ({ jobBlobs }, { id }) => jobBlobs.add(id, { sha256: "b".repeat(64), bytes: 7 }),
  deliver: (records) => deliverOnce(records, { ...failed, isDelivered: true }),
  failToDeliver: (records) => deliverOnce(records, failed),
  refuseDelivery: (records) => deliverOnce(records, { ...failed, isGone: true }),
  replay: async ({ webhooks, webhookDeliveries }, { project }) => {
    for (const { id } of await webhooks.list(project)) {
      const { deliveries } = await webhookDeliveries.list(id, { limit: 1 });
      for (const delivery of deliveries) {
        await webhookDeliveries.replay(id, delivery.id, audit);
      }
      await webhooks.enable({ project, id, audit });
    }
  },
  purge: ({ webhookDeliveries }) => webhookDeliveries.purge(),
};

async function deliverOnce({ webhookQueue }: Records, outcome: typeof failed): Promise<void> {
  for (const webhookId of await webhookQueue.listDue()) {
    for (const delivery of await webhookQueue.begin(webhookId, 2)) {
      await webhookQueue.end(delivery, outcome);
    }
  }
}

const anyCourse = fc.array(
  fc.record({
    step: fc.constantFrom(...Object.keys(steps)),
    project: fc.constantFrom(...projects),
    job: fc.nat(),
  }),
  { minLength: 10, maxLength: 40 },
);

/** Each counter, then what it should be: the number or the sum of the rows themselves. */
async function countBoth(db: Kysely<Schema>) {
  const { rows } = await sql<{ counted: unknown; found: unknown }>`
    select coalesce((select jobs from waiting_jobs where project = p.name), 0) as counted,
      (select count(*) from jobs where project = p.name and status = 'Pending') as found
    from projects p
    union all
    select coalesce((select stored_bytes from project_usage where project = p.name), 0),
      coalesce((select sum(bytes) from project_blobs where project = p.name), 0) +
      coalesce((select sum(b.bytes) from job_blobs b join jobs j on j.id = b.job_id
        where j.project = p.name), 0)
    from projects p
    union all
    select waiting_deliveries, (select count(*) from webhook_deliveries
      where webhook_id = webhooks.id and next_attempt_at is not null)
    from webhooks`.execute(db);
  return rows.map(({ counted, found }) => [Number(counted), Number(found)] as const);
}

async function listIds({ jobs }: Records, project: string): Promise<string[]> {
  const { documents } = await jobs.list(project, { limit: 200 });
  return documents.map((text) => String((JSON.parse(text) as { id: unknown }).id));
}

test("counters are what a scan finds, whatever happens", async (t) => {
  await fc.assert(
    fc.asyncProperty(anyCourse, async (course) => {
      const database = await keptDatabase(t);
      let time = Date.parse(at);
      const records = await openRecords(database, { now: () => new Date((time += 1000)) });
      const { db, close } = await openDatabase(database, new Changes());
      for (const project of projects) {
        await records.projects.ensure(project);
        const webhook = { url: "https://hooks.test/", events: ["job.*" as const], description: "" };
        await records.webhooks.create(project, { ...webhook, secret: "whsec_test" }, {});
      }
      for (const { step, project, job } of course) {
        const ids = await listIds(records, project);
        const id = ids[job % ids.length] ?? "";
        // Some steps are refused, such as the deletion of a job that waits.
        await Promise.resolve(steps[step]?.(records, { project, id })).catch(() => {});
        for (const [counted, found] of await countBoth(db)) assert.equal(counted, found, step);
      }
      await close();
      await records.close();
    }),
    { numRuns: 20 },
  );
});

test("a job that waits again does not wait for its first worker", async () => {
  const records = await openTestRecords();
  const { id } = await records.jobs.create("default", makeNewJob());
  assert.notEqual(await records.metrics.findOldestWaitingTime(), undefined);
  const job = { project: "default", id };
  for (const step of ["begin", "work", "interrupt"]) await steps[step]?.(records, job);
  assert.equal((await records.jobs.find("default", id))?.status, "Pending");
  assert.equal(await records.metrics.findOldestWaitingTime(), undefined);
  await records.close();
});
