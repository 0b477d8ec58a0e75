import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { type TestContext } from "node:test";
import type { Log } from "../../src/log/json-log.ts";
import { openStorage } from "../../src/service/storage-folder/open-storage.ts";
import { recordsPlace } from "../../src/service/storage-folder/data-directory.ts";

async function makeStorage(t: TestContext, log: Log = () => {}) {
  const parent = await mkdtemp(join(tmpdir(), "storage-"));
  const directory = join(parent, "data");
  const limits = { maxWaitingJobs: 1, reserveBytes: 0, retention: {} };
  const place = recordsPlace({ MOS_DATA_DIR: directory, MOS_DATABASE_URL: undefined });
  const storage = await openStorage(place, { now: () => new Date(), log, ...limits });
  t.after(async () => {
    await storage[Symbol.asyncDispose]();
    await rm(parent, { recursive: true });
  });
  return { directory, storage };
}

test("only their owner can read the data folder and its database", async (t) => {
  const { directory } = await makeStorage(t);
  const mode = async (file: string) =>
    ((await stat(join(directory, file))).mode & 0o777).toString(8);
  assert.equal(await mode(""), "700");
  for (const file of ["service.sqlite", "service.sqlite-wal", "service.sqlite-shm"]) {
    assert.equal(await mode(file), "600", file);
  }
});

test("what has expired and cannot be deleted is logged, and the service goes on", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const failed = Promise.withResolvers<string>();
  const { directory, storage } = await makeStorage(t, (_level, message, fields) => {
    failed.resolve(`${message}: ${String(fields?.["part"])} ${String(fields?.["error"])}`);
  });
  await rm(join(directory, "incoming"), { recursive: true });
  t.mock.timers.tick(3_600_000);
  assert.match(await failed.promise, /could not be deleted: blobs .*ENOENT/);
  assert.deepEqual(await storage.records.tokens.list("default"), []);
});

test("a purge that meets another process' write lock is logged, and reading goes on", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const failed = Promise.withResolvers<string>();
  const { directory, storage } = await makeStorage(t, (_level, message, fields) => {
    failed.resolve(`${message}: ${String(fields?.["error"])}`);
  });
  const other = new DatabaseSync(join(directory, "service.sqlite"));
  t.after(() => other.close());
  other.exec("begin immediate");
  t.mock.timers.tick(3_600_000);
  assert.deepEqual(await storage.records.tokens.list("default"), []);
  assert.match(await failed.promise, /could not be deleted: .*Another process writes/);
});
