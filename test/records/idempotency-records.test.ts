import assert from "node:assert/strict";
import { test } from "node:test";
import { jobQuery } from "../../src/contract/jobs/job-lists.ts";
import { uploadSource } from "../../src/contract/models/model-source.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { keptDatabase, testDatabase } from "../support/test-database.ts";
import { listJobs, makeNewJob, openTestRecords } from "./new-jobs.ts";

const request = {
  project: "default",
  tokenId: "token-a",
  key: "key-1",
  hash: "hash",
  seal: (answer: string) => `sealed ${answer}`,
  unseal: (sealed: string) => sealed.replace("sealed ", ""),
};
const other = { ...request, hash: "other" };

function createJob(records: Records, idempotency = request) {
  return records.jobs.create("default", makeNewJob(), { idempotency });
}

async function countJobs(records: Records): Promise<number> {
  return (await listJobs(records, "default", jobQuery.parse({}))).jobs.length;
}

test("idempotency.findAnswer() gives the first answer to the same request", async () => {
  const records = await openTestRecords();
  assert.equal(await records.idempotency.findAnswer(request), undefined);
  const job = await createJob(records);
  assert.equal(await records.idempotency.findAnswer(request), JSON.stringify(job));
  await records.close();
});

test("idempotency.findAnswer() refuses a key that came with another request", async () => {
  const records = await openTestRecords();
  await createJob(records);
  await assert.rejects(records.idempotency.findAnswer(other), { code: "idempotency_key_reused" });
  await records.close();
});

test("idempotency.findAnswer() keeps the keys of tokens and projects apart", async () => {
  const records = await openTestRecords();
  await createJob(records);
  const { idempotency } = records;
  assert.equal(await idempotency.findAnswer({ ...other, tokenId: "token-b" }), undefined);
  assert.equal(await idempotency.findAnswer({ ...other, project: "other" }), undefined);
  await records.close();
});

test("of requests with one key that come together one creates something", async () => {
  const records = await openTestRecords();
  const settled = await Promise.allSettled([1, 2, 3].map(() => createJob(records)));
  const late = settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  const [job] = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const answer = JSON.stringify(job);
  assert.deepEqual(
    late.map((error) => error.answer),
    [answer, answer],
  );
  await assert.rejects(createJob(records, other), { code: "idempotency_key_reused" });
  assert.equal(await countJobs(records), 1);
  await records.close();
});

test("a request that is refused leaves its key free", async () => {
  const records = await openTestRecords();
  const source = uploadSource("0".repeat(64));
  const refused = makeNewJob({ model: { name: "detector.onnx", source } });
  await assert.rejects(records.jobs.create("default", refused, { idempotency: request }), {
    code: "model_not_found",
  });
  assert.equal(await records.idempotency.findAnswer(other), undefined);
  await createJob(records, other);
  await records.close();
});

test("a crash before the answer is stored leaves neither a job nor a key", async (t) => {
  const database = await keptDatabase(t);
  const now = () => new Date();
  const earlier = await openRecords(database, { now });
  const seal = () => {
    throw new RangeError("No answer");
  };
  await assert.rejects(createJob(earlier, { ...request, seal }), RangeError);
  await earlier.close();
  const records = await openRecords(database, { now });
  assert.equal(await countJobs(records), 0);
  await createJob(records, other);
  assert.equal(await countJobs(records), 1);
  await records.close();
});

test("idempotency keys are forgotten after 24 hours", async () => {
  let now = new Date("2026-03-01T00:00:00Z");
  const records = await openRecords(await testDatabase(), { now: () => now });
  const job = await createJob(records);
  now = new Date("2026-03-01T23:59:59Z");
  await records.idempotency.purge();
  assert.equal(await records.idempotency.findAnswer(request), JSON.stringify(job));
  now = new Date("2026-03-02T00:00:00Z");
  assert.equal(await records.idempotency.findAnswer(other), undefined);
  await createJob(records, other);
  assert.notEqual(await records.idempotency.findAnswer(other), undefined);
  await records.close();
});
