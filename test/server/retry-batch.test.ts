import assert from "node:assert/strict";
import test from "node:test";
import { type Batch, batch as batchSchema } from "../../src/contract/batches/batch.ts";
import { retriedBatch } from "../../src/contract/routes/batch-routes.ts";
import { completed, endJob, failed } from "../github-app/reported-batch.ts";
import { tenantToken, workflowScopes } from "./tenant-tokens.ts";
import { makeTestApp, problemIn, type TestApp } from "./test-app.ts";

const models = ["a", "b"].map((name) => ({ name, source: `https://models.example/${name}.onnx` }));
const request = {
  models,
  targets: ["cpu", "cpu-int8"],
  suite: "nightly",
  labels: { team: "vision" },
  gates: { maxSizeRatio: 0.5 },
};

/** A batch of four jobs: the first passed, the second and third failed, the last was cancelled. */
async function endedBatch(app: TestApp, fields: object = {}): Promise<Batch> {
  const answer = await app.ask("POST /v1/batches", { body: { ...request, ...fields } });
  const made = batchSchema.parse(await answer.json());
  const [first = "", second = "", third = "", last = ""] = made.jobs.map(({ id }) => id);
  await endJob(app, first, completed);
  await endJob(app, second, failed);
  await endJob(app, third, failed);
  await app.ask(`POST /v1/jobs/cancel/${last}`);
  return made;
}

function listPairs(batches: readonly Batch[]): string[] {
  return batches.flatMap(({ jobs }) => jobs.map(({ model, target }) => `${model} ${target}`));
}

test("POST /batches/{id}/retry starts the jobs anew that failed, and no others", async (t) => {
  const app = await makeTestApp(t);
  const former = await endedBatch(app, { recipe: { evaluation: { samples: 3 } } });
  const answer = await app.ask(`POST /v1/batches/${former.id}/retry`);
  assert.equal(answer.status, 202);
  const { batches } = retriedBatch.parse(await answer.json());
  assert.deepEqual(listPairs(batches).toSorted(), ["a cpu-int8", "b cpu"]);
  for (const made of batches) {
    assert.equal(made.suite, "nightly");
    assert.equal(made.name, former.name);
    assert.deepEqual(made.labels, { team: "vision" });
  }
  const ids = batches.flatMap(({ jobs }) => jobs.map(({ id }) => id));
  assert.deepEqual(app.submitted.slice(4), ids);
  for (const id of ids) {
    const again = await app.records.jobs.find("default", id);
    const [old] = former.jobs.filter(
      ({ model, target }) => model === again?.model.name && target === again.target,
    );
    const before = await app.records.jobs.find("default", old?.id ?? "");
    assert.deepEqual(again?.recipe, before?.recipe);
    assert.deepEqual(again?.gateLimits, before?.gateLimits);
    assert.equal(again?.status, "Pending");
  }
});

test("a retry takes cancelled jobs where they are asked for", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await endedBatch(app);
  const call = `POST /v1/batches/${id}/retry?status=Failed&status=Cancelled`;
  const { batches } = retriedBatch.parse(await (await app.ask(call)).json());
  assert.deepEqual(listPairs(batches).toSorted(), ["a cpu-int8", "b cpu", "b cpu-int8"]);
});

test("jobs of one recipe that make up a product are one batch", async (t) => {
  const app = await makeTestApp(t);
  const answer = await app.ask("POST /v1/batches", { body: { ...request, targets: ["cpu"] } });
  const { id, jobs } = batchSchema.parse(await answer.json());
  for (const job of jobs) await endJob(app, job.id, failed);
  const { batches } = retriedBatch.parse(
    await (await app.ask(`POST /v1/batches/${id}/retry`)).json(),
  );
  assert.deepEqual(
    batches.map((made) => listPairs([made])),
    [["a cpu", "b cpu"]],
  );
});

test("a retry with an Idempotency-Key that is sent again starts nothing", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await endedBatch(app);
  const headers = { "idempotency-key": "once" };
  const first = await app.ask(`POST /v1/batches/${id}/retry`, { headers });
  const started = app.submitted.length;
  const second = await app.ask(`POST /v1/batches/${id}/retry`, { headers });
  assert.equal(second.headers.get("idempotency-replayed"), "true");
  assert.deepEqual(await second.json(), await first.json());
  assert.equal(app.submitted.length, started);
  const other = await app.ask(`POST /v1/batches/${id}/retry?status=Cancelled`, { headers });
  assert.equal((await problemIn(other)).code, "idempotency_key_reused");
});

test("a batch without such jobs is refused, with what it lacks", async (t) => {
  const app = await makeTestApp(t);
  const answer = await app.ask("POST /v1/batches", { body: request });
  const { id } = batchSchema.parse(await answer.json());
  const problem = await problemIn(await app.ask(`POST /v1/batches/${id}/retry`));
  assert.equal(problem.code, "nothing_to_retry");
  assert.equal(problem.detail, `No job of batch "${id}" is Failed`);
});

test("a token that may not record baselines retries no batch that records some", async (t) => {
  const app = await makeTestApp(t);
  const revision = { sha: "a".repeat(40), branch: "main", recordBaseline: true };
  const { id } = await endedBatch(app, { revision });
  const scopes = workflowScopes.filter((scope) => scope !== "baselines:write");
  const { token } = await tenantToken(app, { scopes });
  const problem = await problemIn(await app.ask(`POST /v1/batches/${id}/retry`, { token }));
  assert.equal(problem.code, "missing_scope");
});
