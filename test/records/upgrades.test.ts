import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "../../src/records/database/migrations.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { sqliteDialect } from "../../src/records/database/sqlite-dialect.ts";

const now = () => new Date();

/** Records of an earlier release, with what it wrote, as the present one finds them. */
async function upgrade(t: TestContext, release: string, ...written: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), "upgrade-"));
  const path = join(folder, "records.db");
  const db = new Kysely<unknown>({ dialect: sqliteDialect(path) });
  await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateTo(
    release,
  );
  for (const statement of written) await sql.raw(statement).execute(db);
  await db.destroy();
  const records = await openRecords(path, { now });
  t.after(async () => {
    await records.close();
    await rm(folder, { recursive: true });
  });
  return records;
}

test("a suite from before suites had owners belongs to no repository", async (t) => {
  const records = await upgrade(
    t,
    "0005-latency-budget",
    "insert into baselines values ('default', 'old', 'm', 'cpu', 'main', 'a', 'job-1', '{}')",
  );
  assert.deepEqual(await records.baselines.findOwner("default", "old"), {
    project: "default",
    origin: null,
  });
  assert.equal(await records.baselines.findOwner("default", "new"), undefined);
});

test("what a project stored before it was counted counts", async (t) => {
  const artifacts = `{"artifacts": [{"sha256": "b", "bytes": 20}, {"sha256": "c", "bytes": 3}]}`;
  const records = await upgrade(
    t,
    "0008-audit",
    "insert into project_blobs values ('default', 'a', '', 100, 'now')",
    `insert into jobs values ('job-1', 'default', 'compress', 'Completed', null, 'm', 's', 'cpu',
      0, 1, 1, '{}', '${artifacts}', null, null, null)`,
    "insert into job_blobs values ('job-1', 'b')",
  );
  assert.equal(await records.usage.storedBytes("default"), 123);
});

test("bytes of files that are deleted no longer count", async (t) => {
  const records = await upgrade(
    t,
    "0010-old-suites",
    "insert into project_blobs values ('default', 'a', '', 100, 'now')",
    "insert into project_blobs values ('default', 'b', '', 20, 'now')",
    "delete from project_blobs where sha256 = 'a'",
    `insert into jobs values ('job-1', 'default', 'compress', 'Completed', null, 'm', 's', 'cpu',
      0, 1, 1, '{}', '{}', null, null, null)`,
    "insert into job_blobs values ('job-1', 'c', 7)",
    "insert into job_blobs values ('job-1', 'd', 1)",
    "delete from job_blobs where sha256 = 'c'",
  );
  assert.equal(await records.usage.storedBytes("default"), 21);
});

test("the content of a check run that was written before is known", async (t) => {
  const settings = `{"repository": "acme/models", "sha": "${"0".repeat(40)}", "checkName": "Models"}`;
  const request = `{"models": [{"source": "https://models.example/a.onnx"}], "targets": ["cpu"]}`;
  const records = await upgrade(
    t,
    "0038-disruptions",
    `insert into github_reports
      (id, project, settings, request, jobs, round, check_run, told, is_accepted, is_open)
      values ('batch-1', 'default', '${settings}', '${request}', '[]', 1, 7, 'hash', 0, 1)`,
  );
  assert.equal((await records.reports.find("batch-1"))?.contentHash, "hash");
});
