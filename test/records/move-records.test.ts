import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { sql } from "kysely";
import { moveRecords } from "../../src/records/move-records.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import { countRows } from "../../src/records/database/table-keys.ts";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { makeNewBatch, makeNewJob, readLogTexts } from "./new-jobs.ts";

const project = "default";
const now = () => new Date();
const lines = Array.from({ length: 1_200 }, (_, i) => `line ${i + 1}`);

/** @returns the id of a job whose log is packed */
async function makePackedLog(path: string): Promise<string> {
  const anHourAgo = await openRecords(path, { now: () => new Date(Date.now() - 3_600_000) });
  const { id } = await anHourAgo.jobs.create(project, makeNewJob());
  await anHourAgo.attempts.begin(id, "hash");
  const error = { code: "worker_killed", message: "Killed" } as const;
  await anHourAgo.attempts.end(id, 1, { error, lines: [{ stream: "stderr", text: "packed" }] });
  await anHourAgo.close();
  const records = await openRecords(path, { now });
  await records.logs.pack();
  await records.close();
  return id;
}

async function makeRecords(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "move-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "records.db");
  const records = await openRecords(path, { now });
  const audit = { project, action: "createProject", tokenId: null, tokenName: "test" };
  await records.projects.ensure("team-a", audit);
  const { id } = await records.jobs.create(project, makeNewJob({ labels: { team: "vision" } }));
  await records.batches.create(project, makeNewBatch());
  await records.attempts.begin(id, "hash");
  await records.jobBlobs.add(id, { sha256: "a".repeat(64), bytes: 7 });
  const line = { at: now().toISOString(), type: "log", stream: "stdout" } as const;
  const events = lines.map((text, i) => ({ ...line, seq: i + 1, text }));
  await records.workers.recordEvents(id, 1, events);
  await records.close();
  const packed = await makePackedLog(path);
  return { path, id, packed };
}

test("moved records are the same ones, and go on", { skip: postgresMissing }, async (t) => {
  const { path, id, packed } = await makeRecords(t);
  const { url } = await startPostgres(t);
  const rows = await moveRecords(path, url);
  assert.ok(rows > lines.length);
  const [before, after] = [await openRecords(path, { now }), await openRecords(url, { now })];
  assert.deepEqual(await after.jobs.find(project, id), await before.jobs.find(project, id));
  assert.deepEqual(await readLogTexts(after, id), lines);
  assert.deepEqual(await readLogTexts(after, packed), ["packed"]);
  assert.deepEqual(await after.projects.list(), await before.projects.list());
  assert.equal(await after.usage.storedBytes(project), 7);
  const last = await before.changeLog.last();
  assert.equal(await after.changeLog.last(), last);
  await after.jobs.create(project, makeNewJob());
  assert.equal(await after.changeLog.last(), last + 1);
  await Promise.all([before.close(), after.close()]);
});

test("a move that was interrupted goes on", { skip: postgresMissing }, async (t) => {
  const { path, id } = await makeRecords(t);
  const { url } = await startPostgres(t);
  const rows = await moveRecords(path, url);
  const { db, close } = await openDatabase(url, new Changes());
  await sql`delete from log_lines where seq > 500`.execute(db);
  await sql`delete from attempts`.execute(db);
  assert.equal(Number(await countRows(db, "log_segments")), 1);
  await close();
  assert.equal(await moveRecords(path, url), rows);
  const records = await openRecords(url, { now });
  assert.equal((await records.logs.tail(id, 1))[0]?.text, lines.at(-1));
  await records.close();
});

test("a database with other records is left as it is", { skip: postgresMissing }, async (t) => {
  const { path } = await makeRecords(t);
  const { url } = await startPostgres(t);
  const records = await openRecords(url, { now });
  const job = await records.jobs.create(project, makeNewJob());
  await assert.rejects(moveRecords(path, url), /Another process uses the database/);
  await records.close();
  await assert.rejects(moveRecords(path, url), /has other records: its table "\w+" differs/);
  const again = await openRecords(url, { now });
  assert.deepEqual(await again.jobs.find(project, job.id), job);
  await again.close();
});
