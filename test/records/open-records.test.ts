import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { jobQuery } from "../../src/contract/jobs/page.ts";
import { migrations } from "../../src/records/database/migrations.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { sqliteDialect } from "../../src/records/database/sqlite-dialect.ts";
import { listJobs, makeNewBatch, makeNewJob } from "./new-jobs.ts";
import { readLog } from "./read-log.ts";

async function databasePath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "records-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "records.db");
}

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

/** A database as an earlier version of the service left it. */
async function makeFormerDatabase(path: string, last: string): Promise<void> {
  const db = new Kysely<unknown>({ dialect: sqliteDialect(path) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  await migrator.migrateTo(last);
  await db.destroy();
}

test("openRecords() copies a database before it changes its schema, and keeps one copy", async (t) => {
  const path = await databasePath(t);
  await makeFormerDatabase(path, "0006-tenants");
  await writeFile(`${path}.before-0005-latency-budget`, "of an earlier change");
  await (await openRecords(path, { now })).close();
  const copy = `${path}.before-0007-job-blobs`;
  const names = await readdir(dirname(path));
  assert.deepEqual(
    names.filter((name) => name.includes(".before-")),
    [basename(copy)],
  );
  const former = new DatabaseSync(copy);
  const { last } = former.prepare("select max(name) as last from kysely_migration").get() ?? {};
  former.close();
  assert.equal(last, "0006-tenants");
  assert.equal((await stat(copy)).mode & 0o777, 0o600);
});

test("openRecords() does not change the schema of a database that another process uses", async (t) => {
  const path = await databasePath(t);
  await makeFormerDatabase(path, "0006-tenants");
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.prepare("select * from projects").all();
  await assert.rejects(openRecords(path, { now }), {
    name: "UnusableDatabaseError",
    message: `The database "${path}" has an older schema, and another process has it open: stop that first`,
  });
  const { last } = other.prepare("select max(name) as last from kysely_migration").get() ?? {};
  assert.equal(last, "0006-tenants");
});

test("openRecords() refuses a database of a newer version", async (t) => {
  const path = await databasePath(t);
  await (await openRecords(path, { now })).close();
  const newer = new DatabaseSync(path);
  newer.exec("insert into kysely_migration values ('9999-future', '2030-01-01T00:00:00.000Z')");
  newer.close();
  await assert.rejects(openRecords(path, { now }), {
    name: "UnusableDatabaseError",
    message: /written by a newer version of the service, which has the migration "9999-future"$/,
  });
});

test("openRecords() keeps what the first release recorded", async (t) => {
  const path = await databasePath(t);
  const made = await openRecords(":memory:", { now });
  const job = await made.jobs.create("default", makeNewJob());
  await made.close();
  const { baseline: _, ...known } = job;
  const { latencyBudgetSeconds, ...evaluation } = job.recipe.evaluation;
  assert.equal(latencyBudgetSeconds, 20);
  const firstRelease = {
    ...known,
    recipe: { ...job.recipe, evaluation: { ...evaluation, runs: 20, warmup: 3 } },
    gateLimits: { ...job.gateLimits, latencyNoiseMs: 0.5 },
  };
  const db = new Kysely<unknown>({ dialect: sqliteDialect(path) });
  await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateTo(
    "0001-jobs",
  );
  await sql`insert into jobs values (${job.id}, 'default', 'compress', 'Pending', null, 'detector.onnx',
    'https://models.test/detector.onnx', 'cpu', 0, 1, 7, 3, '{}', ${JSON.stringify(firstRelease)})`.execute(
    db,
  );
  await sql`insert into log_lines values (${job.id}, 2, ${job.createdAt}, 'stdout', 'kept')`.execute(
    db,
  );
  await sql`insert into attempts values (${job.id}, 1, 'hash', 42, 'boot:7', ${job.createdAt}, null)`.execute(
    db,
  );
  await db.destroy();
  const records = await openRecords(path, { now });
  assert.deepEqual(await records.jobs.find("default", job.id), job);
  const process = { pid: 42, startMark: "boot:7" };
  assert.deepEqual(await records.attempts.listUnfinished(), [
    { jobId: job.id, project: "default", attempt: 1, live: true, process, replica: null },
  ]);
  const event = { seq: 1, at: job.createdAt, type: "log", stream: "stdout", text: "next" } as const;
  await records.workers.recordEvents(job.id, 1, [event]);
  const lines = await readLog(records, job.id);
  assert.deepEqual(
    lines.map(({ seq, text }) => [seq, text]),
    [
      [2, "kept"],
      [3, "next"],
    ],
  );
  await records.close();
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
  const ref = { project: "default", tokenId: "token", key: "key" };
  const failing = records.batches.create("default", makeNewBatch(), {
    answered: {
      ref,
      buildAnswer: () => {
        throw new RangeError("No answer");
      },
    },
  });
  await assert.rejects(failing, RangeError);
  assert.deepEqual((await listJobs(records, "default", jobQuery.parse({}))).jobs, []);
  await records.close();
});
