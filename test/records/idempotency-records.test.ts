import assert from "node:assert/strict";
import { test } from "node:test";
import { openRecords } from "../../src/records/open-records.ts";
import { keptDatabase, testDatabase } from "../support/test-database.ts";
import { makeNewJob, openTestRecords } from "./new-jobs.ts";

const ref = { project: "default", tokenId: "token-a", key: "key-1" };
const answer = "the answer";

test("idempotency.begin() gives the first answer to the same request", async () => {
  const records = await openTestRecords();
  assert.equal(await records.idempotency.begin(ref, "hash"), undefined);
  await records.idempotency.finish(ref, answer);
  assert.deepEqual(await records.idempotency.begin(ref, "hash"), answer);
  await records.close();
});

test("idempotency.begin() refuses a key that came with another request, or is being answered", async () => {
  const records = await openTestRecords();
  await records.idempotency.begin(ref, "hash");
  await assert.rejects(records.idempotency.begin(ref, "hash"), { code: "idempotency_in_progress" });
  await assert.rejects(records.idempotency.begin(ref, "other"), { code: "idempotency_key_reused" });
  await records.close();
});

test("idempotency.begin() keeps the keys of tokens and projects apart", async () => {
  const records = await openTestRecords();
  await records.idempotency.begin(ref, "hash");
  assert.equal(await records.idempotency.begin({ ...ref, tokenId: "token-b" }, "other"), undefined);
  assert.equal(await records.idempotency.begin({ ...ref, project: "other" }, "other"), undefined);
  await records.close();
});

test("idempotency.abandon() frees the key of a request that was refused", async () => {
  const records = await openTestRecords();
  await records.idempotency.begin(ref, "hash");
  await records.idempotency.abandon(ref);
  assert.equal(await records.idempotency.begin(ref, "other"), undefined);
  await records.close();
});

test("jobs.create() answers its key in the same transaction, so that a crash makes no second job", async () => {
  const records = await openTestRecords();
  await records.idempotency.begin(ref, "hash");
  const job = await records.jobs.create("default", makeNewJob(), {
    answered: { ref, buildAnswer: (created) => created.id },
  });
  assert.deepEqual(await records.idempotency.begin(ref, "hash"), job.id);
  await records.close();
});

test("a request that an earlier process did not answer is the first one again", async (t) => {
  const database = await keptDatabase(t);
  const now = () => new Date();
  const earlier = await openRecords(database, { now });
  await earlier.idempotency.begin(ref, "hash");
  await earlier.close();
  const records = await openRecords(database, { now });
  assert.equal(await records.idempotency.begin(ref, "other"), undefined);
  await records.close();
});

test("idempotency keys are forgotten after 24 hours", async () => {
  let now = new Date("2026-03-01T00:00:00Z");
  const records = await openRecords(await testDatabase(), { now: () => now });
  await records.idempotency.begin(ref, "hash");
  await records.idempotency.finish(ref, answer);
  now = new Date("2026-03-01T23:59:59Z");
  await records.idempotency.purge();
  assert.deepEqual(await records.idempotency.begin(ref, "hash"), answer);
  now = new Date("2026-03-02T00:00:00Z");
  assert.equal(await records.idempotency.begin(ref, "other"), undefined);
  await records.close();
});
