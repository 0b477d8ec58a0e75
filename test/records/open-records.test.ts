import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { Kysely, sql } from "kysely";
import { jobQuery } from "../../src/contract/jobs/job-lists.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { sqliteDialect } from "../../src/records/database/sqlite-dialect.ts";
import { databasePath } from "./database-path.ts";
import { listJobs, makeNewBatch, makeNewJob } from "./new-jobs.ts";

const now = () => new Date();

test("openRecords() finds what was recorded before", async (t) => {
  const path = await databasePath(t);
  const before = await openRecords(path, { now });
  const job = await before.jobs.create("default", makeNewJob());
  await before.close();
  const after = await openRecords(path, { now });
  assert.deepEqual(await after.jobs.find("default", job.id), job);
  await after.close();
});

test("openRecords() lets two processes write to one file", async (t) => {
  const path = await databasePath(t);
  const records = await openRecords(path, { now });
  const script = `
    const { openRecords } = await import("./src/records/open-records.ts");
    const { makeNewJob } = await import("./test/records/new-jobs.ts");
    const records = await openRecords(${JSON.stringify(path)}, { now: () => new Date() });
    for (let i = 0; i < 20; i++) await records.jobs.create("default", makeNewJob());
    await records.close();`;
  const other = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd: new URL("../..", import.meta.url),
  });
  for (let i = 0; i < 20; i++) await records.jobs.create("default", makeNewJob());
  await other;
  const { jobs } = await listJobs(records, "default", jobQuery.parse({ limit: "100" }));
  assert.equal(jobs.length, 40);
  await records.close();
});

test("records refuse with storage_full on a full disk, keep what they have, and go on afterwards", async (t) => {
  const path = await databasePath(t);
  const records = await openRecords(path, { now });
  const kept = await records.jobs.create("default", makeNewJob());
  await records.close();
  const db = new Kysely<{ filler: { text: string } }>({ dialect: sqliteDialect(path) });
  await sql`create table filler (text text)`.execute(db);
  await sql`pragma max_page_count = 60`.execute(db);
  const fill = db.transaction().execute(async (trx) => {
    for (;;) {
      await trx
        .insertInto("filler")
        .values({ text: "x".repeat(4000) })
        .execute();
    }
  });
  await assert.rejects(fill, { code: "storage_full" });
  assert.deepEqual(await db.selectFrom("filler").selectAll().execute(), []);
  await db.insertInto("filler").values({ text: "fits" }).execute();
  await db.destroy();
  const again = await openRecords(path, { now });
  assert.deepEqual(await again.jobs.find("default", kept.id), kept);
  await again.close();
});

test("records keep nothing of a batch whose creation fails half-way", async (t) => {
  const records = await openRecords(await databasePath(t), { now });
  const failing = records.batches.create("default", makeNewBatch(), {
    idempotency: {
      project: "default",
      tokenId: "token",
      key: "key",
      hash: "hash",
      seal: () => {
        throw new RangeError("No answer");
      },
      unseal: (sealed) => sealed,
    },
  });
  await assert.rejects(failing, RangeError);
  assert.deepEqual((await listJobs(records, "default", jobQuery.parse({}))).jobs, []);
  await records.close();
});
