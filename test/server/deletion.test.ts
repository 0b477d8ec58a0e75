import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test, { type TestContext } from "node:test";
import { auditPage } from "../../src/contract/people/audit.ts";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import { modelRoutes } from "../../src/contract/routes/model-routes.ts";
import { purgeReleasedBlobs } from "../../src/service/storage-folder/purge-regularly.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob, type TestApp } from "./test-app.ts";

const hourMs = 3_600_000;
const modelPage = modelRoutes.listModels.replies[200].json;

/** Has a job complete with one artifact. */
async function complete(app: TestApp, id: string, content: string): Promise<string> {
  const worker = await beginTestWorker(app, id);
  const { sha256, bytes } = await worker.store(content);
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "log", stream: "stdout", text: "a line" },
    { type: "artifact", artifact: { name: "model.onnx", kind: "model", sha256, bytes } },
    { type: "result", outcome: "Completed" },
  );
  return sha256;
}

async function purge({ records, blobs }: TestApp): Promise<void> {
  await purgeReleasedBlobs(records, blobs, new Date(Date.now() + 2 * hourMs));
}

async function upload(app: TestApp, content: string): Promise<string> {
  const sha256 = createHash("sha256").update(content).digest("hex");
  const headers = { "content-type": "" };
  const answer = await app.ask(`PUT /v1/models/${sha256}`, { body: content, headers });
  assert.equal(answer.status, 201);
  return sha256;
}

async function finishedJob(t: TestContext, content = "result") {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  return { app, id, sha256: await complete(app, id, content) };
}

test("a deleted job is gone with its log and its artifacts", async (t) => {
  const { app, id, sha256 } = await finishedJob(t);
  assert.equal((await app.ask(`DELETE /v1/jobs/${id}`)).status, 204);
  for (const path of ["", "/logs", "/artifacts", "/artifacts/model.onnx"]) {
    assert.equal((await app.ask(`GET /v1/jobs/${id}${path}`)).status, 404, path);
  }
  assert.equal((await app.ask(`DELETE /v1/jobs/${id}`)).status, 404);
  const list = await (await app.ask("GET /v1/jobs")).json();
  assert.deepEqual(list, { jobs: [], nextCursor: null });
  assert.ok(await app.blobs.find(sha256));
  await purge(app);
  assert.equal(await app.blobs.find(sha256), undefined);
});

test("a file goes with the last job that has it", async (t) => {
  const { app, id, sha256 } = await finishedJob(t);
  const other = await startJob(app);
  await complete(app, other.id, "result");
  await app.ask(`DELETE /v1/jobs/${id}`);
  await purge(app);
  assert.ok(await app.blobs.find(sha256));
  await app.ask(`DELETE /v1/jobs/${other.id}`);
  await purge(app);
  assert.equal(await app.blobs.find(sha256), undefined);
});

test("a file that is stored again soon after its deletion stays", async (t) => {
  const { app, id, sha256 } = await finishedJob(t);
  await app.ask(`DELETE /v1/jobs/${id}`);
  await upload(app, "result");
  await purge(app);
  assert.ok(await app.blobs.find(sha256));
});

test("a job that has not ended is not deleted", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const problem = await problemIn(await app.ask(`DELETE /v1/jobs/${id}`));
  assert.equal(problem.code, "job_unfinished");
  assert.equal(problem.detail, `Job "${id}" cannot be deleted: it is Pending`);
  assert.equal((await app.ask(`GET /v1/jobs/${id}`)).status, 200);
});

test("a batch is deleted with its jobs, which are not deleted without it", async (t) => {
  const app = await makeTestApp(t);
  const model = { source: "https://models.example/detector.onnx" };
  const body = { models: [model], targets: ["cpu", "cpu-int8"] };
  const batch = batchSchema.parse(await (await app.ask("POST /v1/batches", { body })).json());
  const ids = batch.jobs.map(({ id }) => id);
  const [first = ""] = ids;
  await app.ask(`POST /v1/jobs/cancel/${first}`);
  const early = await problemIn(await app.ask(`DELETE /v1/batches/${batch.id}`));
  assert.equal(early.code, "batch_unfinished");
  const alone = await problemIn(await app.ask(`DELETE /v1/jobs/${first}`));
  assert.equal(alone.code, "job_in_use");
  await app.ask(`POST /v1/batches/cancel/${batch.id}`);
  assert.equal((await app.ask(`DELETE /v1/batches/${batch.id}`)).status, 204);
  assert.equal((await app.ask(`GET /v1/batches/${batch.id}`)).status, 404);
  for (const id of ids) assert.equal((await app.ask(`GET /v1/jobs/${id}`)).status, 404);
});

test("a deletion is in the audit", async (t) => {
  const { app, id } = await finishedJob(t);
  await app.ask(`DELETE /v1/jobs/${id}`);
  const { entries } = auditPage.parse(await (await app.ask("GET /v1/audit")).json());
  assert.deepEqual([entries[0]?.action, entries[0]?.subject], ["deleteJob", id]);
});

test("uploads are listed newest first, page by page", async (t) => {
  const app = await makeTestApp(t);
  const uploaded: string[] = [];
  for (const content of ["one", "two", "three"]) {
    uploaded.unshift(await upload(app, content));
    app.advance(1000);
  }
  const read = async (query: string) =>
    modelPage.parse(await (await app.ask(`GET /v1/models?limit=2${query}`)).json());
  const first = await read("");
  const next = await read(`&cursor=${first.nextCursor}`);
  const found = [...first.models, ...next.models];
  assert.deepEqual(
    found.map(({ sha256 }) => sha256),
    uploaded,
  );
  const [newest] = found;
  assert.deepEqual(newest, {
    source: `upload:sha256:${uploaded[0]}`,
    sha256: uploaded[0],
    bytes: 5,
    createdAt: "2026-01-01T00:00:02.000Z",
  });
  assert.equal(next.nextCursor, null);
  assert.equal((await app.ask("GET /v1/models?cursor=eA")).status, 400);
});

test("a model is deleted once no job needs it", async (t) => {
  const app = await makeTestApp(t);
  const sha256 = await upload(app, "model");
  const job = await startJob(app, { model: { source: `upload:sha256:${sha256}` } });
  const problem = await problemIn(await app.ask(`DELETE /v1/models/${sha256}`));
  assert.equal(problem.code, "model_in_use");
  assert.equal(problem.detail, `Model "${sha256}" is needed by job "${job.id}"`);
  await app.ask(`POST /v1/jobs/cancel/${job.id}`);
  assert.equal((await app.ask(`DELETE /v1/models/${sha256}`)).status, 204);
  assert.equal((await app.ask(`HEAD /v1/models/${sha256}`)).status, 404);
  assert.equal((await app.ask(`DELETE /v1/models/${sha256}`)).status, 404);
  await purge(app);
  assert.equal(await app.blobs.find(sha256), undefined);
});

test("evaluation data is not deleted while a job needs it", async (t) => {
  const app = await makeTestApp(t);
  const sha256 = await upload(app, "data");
  await startJob(app, { recipe: { evaluation: { data: `upload:sha256:${sha256}` } } });
  assert.equal((await app.ask(`DELETE /v1/models/${sha256}`)).status, 409);
});

test("a job whose resource waits for its record cannot be deleted yet", async (t) => {
  const app = await makeTestApp(t, { awaitsRecord: () => true });
  const { id } = await startJob(app);
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  const answer = await app.ask(`DELETE /v1/jobs/${id}`);
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [409, "5"]);
  assert.equal((await app.ask(`GET /v1/jobs/${id}`)).status, 200);
});
