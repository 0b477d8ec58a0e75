import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { zeroCounts } from "../../src/contract/batches/batch.ts";
import type { NewJob } from "../../src/records/jobs/insert-jobs.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";

const project = "default";
const [own, foreign] = ["a", "b"].map((digit) => digit.repeat(64));
const id = `job-${"1".repeat(26)}`;
const resource = { namespace: "models", name: "detector", uid: "uid" };

function jobOn(hash = "", fields: Partial<NewJob> = {}): NewJob {
  const model = { source: `upload:sha256:${hash}`, name: "detector.onnx" };
  return makeNewJob({ model, resource, ...fields });
}

/** One file was uploaded to the project, and one to another. */
async function open(t: TestContext) {
  const records = await openTestRecords();
  t.after(() => records.close());
  for (const [owner, sha256 = ""] of [
    [project, own],
    ["other", foreign],
  ] as const) {
    await records.projectBlobs.add({ project: owner, origin: null }, { sha256, bytes: 1 });
  }
  return records;
}

test("a job of a resource that names another project's upload is Failed before a worker begins", async (t) => {
  const records = await open(t);
  await records.cluster.createJob(project, jobOn(foreign, { id }));
  const job = await records.jobs.find(project, id);
  assert.deepEqual([job?.status, job?.statusReason], ["Failed", "model_not_found"]);
  assert.match(job?.error?.message ?? "", new RegExp(`SHA-256 ${foreign} was uploaded`));
  const pod = { podUid: "uid", part: null };
  assert.equal(await records.attempts.beginPodAttempt(id, pod), undefined);
});

test("a job of a resource goes on with an upload of its project, and once its work has begun", async (t) => {
  const records = await open(t);
  await records.cluster.createJob(project, jobOn(own, { id }));
  assert.equal(await records.jobs.findStatus(id), "Pending");
  const begun = `job-${"2".repeat(26)}`;
  await records.cluster.createJob(project, jobOn(foreign, { id: begun, hasBegun: true }));
  assert.equal(await records.jobs.findStatus(begun), "Pending");
});

test("of a batch that is a resource those jobs are Failed whose model or data is another project's", async (t) => {
  const records = await open(t);
  const { recipe } = makeNewJob();
  const data = `upload:sha256:${foreign}`;
  const jobs = [
    jobOn(own),
    jobOn(foreign),
    jobOn(own, { recipe: { ...recipe, evaluation: { ...recipe.evaluation, data } } }),
  ];
  const batch = `batch-${"1".repeat(26)}`;
  await records.cluster.createBatch(project, makeNewBatch({ id: batch, jobs, resource }));
  const found = await records.batches.find(project, batch);
  assert.deepEqual(
    found?.jobs.map(({ status }) => status),
    ["Pending", "Failed", "Failed"],
  );
  assert.deepEqual(found.counts, { ...zeroCounts, Pending: 1, Failed: 2 });
});
