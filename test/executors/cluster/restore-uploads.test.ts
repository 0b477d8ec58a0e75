import assert from "node:assert/strict";
import test from "node:test";
import { sql } from "kysely";
import { limits } from "../../../src/contract/limits.ts";
import { restoreUploads } from "../../../src/executors/cluster/records-from-resources.ts";
import { Changes } from "../../../src/records/database/changes.ts";
import { openDatabase } from "../../../src/records/database/open-database.ts";
import { openRecords } from "../../../src/records/open-records.ts";
import { makeNewJob } from "../../records/new-jobs.ts";
import { keptDatabase } from "../../support/test-database.ts";

const sha256 = "a".repeat(64);
const hour = 3_600_000;

for (const [when, offsetMs, isRestored] of [
  ["an hour before the database was created has its upload again", -hour, true],
  ["after that gets no upload of another project by its hash", hour, false],
] as const) {
  test(`a resource that was created ${when}`, async () => {
    const records = await openRecords(":memory:", { now: () => new Date() });
    await records.projectBlobs.add({ project: "other", origin: null }, { sha256, bytes: 1 });
    const { recipe } = makeNewJob();
    const model = { name: "model.onnx", source: `upload:sha256:${sha256}` };
    const createdAt = new Date(Date.now() + offsetMs).toISOString();
    await restoreUploads(
      { records, findUpload: async () => ({ sha256, bytes: 1, files: [] }), log: () => {} },
      { project: "own", createdAt, jobs: [{ model, recipe }] },
    );
    const upload = { project: "own", repository: undefined, sha256 };
    assert.equal(await records.projectBlobs.has(upload), isRestored);
    await records.close();
  });
}

test("a project gets no more manifests again than it may have", async (t) => {
  const database = await keptDatabase(t);
  const records = await openRecords(database, { now: () => new Date() });
  t.after(() => records.close());
  const { db, close } = await openDatabase(database, new Changes());
  t.after(close);
  await sql`insert into manifest_files (project, manifest, position, path, sha256, bytes)
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers
      where n < ${limits.manifests})
    select 'own', 'manifest ' || n, 0, 'net.onnx', 'a', 7 from numbers`.execute(db);
  const files = [{ path: "net.onnx", sha256: "b".repeat(64), bytes: 7 }];
  const messages: string[] = [];
  const { recipe } = makeNewJob();
  const model = { name: "model.onnx", source: `upload:sha256:${sha256}` };
  await restoreUploads(
    {
      records,
      findUpload: async () => ({ sha256, bytes: 1, files }),
      log: (_level, message) => messages.push(message),
    },
    { project: "own", createdAt: new Date(0).toISOString(), jobs: [{ model, recipe }] },
  );
  const upload = { project: "own", repository: undefined, sha256 };
  assert.equal(await records.projectBlobs.has(upload), false);
  assert.match(messages.join(), /too many manifests/);
});
