import assert from "node:assert/strict";
import { readdir, stat, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { sql } from "kysely";
import { migrateFile } from "../../src/records/database/migrate.ts";
import { type Migrations, sqliteMigrations } from "../../src/records/database/migrations.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { databasePath } from "./database-path.ts";
import { makeNewJob } from "./new-jobs.ts";

const now = () => new Date();

/** Those of a later version, which adds a column and fills it. */
const laterMigrations: Migrations = {
  ...sqliteMigrations,
  "9999-planted": {
    async up(db) {
      await sql`alter table jobs add column planted text`.execute(db);
      await sql`update jobs set planted = id`.execute(db);
    },
  },
};

test("an upgrade keeps what was recorded, and copies the database before", async (t) => {
  const path = await databasePath(t);
  const records = await openRecords(path, { now });
  const job = await records.jobs.create("default", makeNewJob());
  await records.close();
  await writeFile(`${path}.before-0000-former`, "of an earlier change");
  await migrateFile(path, laterMigrations);
  const upgraded = new DatabaseSync(path);
  assert.equal(upgraded.prepare("select planted from jobs").get()?.["planted"], job.id);
  upgraded.close();
  const names = await readdir(dirname(path));
  const copy = `${path}.before-9999-planted`;
  assert.deepEqual(
    names.filter((name) => name.includes(".before-")),
    [basename(copy)],
  );
  assert.equal((await stat(copy)).mode & 0o777, 0o600);
  const former = await openRecords(copy, { now });
  assert.deepEqual(await former.jobs.find("default", job.id), job);
  await former.close();
});

test("an upgrade does not change a database that another process uses", async (t) => {
  const path = await databasePath(t);
  await (await openRecords(path, { now })).close();
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.prepare("select * from projects").all();
  await assert.rejects(migrateFile(path, laterMigrations), {
    name: "UnusableDatabaseError",
    message: `The database "${path}" has an older schema, and another process has it open: stop that first`,
  });
  const { last } = other.prepare("select max(name) as last from kysely_migration").get() ?? {};
  assert.equal(last, Object.keys(sqliteMigrations).at(-1));
});

test("a version does not open a database of a newer one", async (t) => {
  const path = await databasePath(t);
  await migrateFile(path, laterMigrations);
  await assert.rejects(openRecords(path, { now }), {
    name: "UnusableDatabaseError",
    message: /written by a newer version of the service, which has the migration "9999-planted"$/,
  });
});
