import assert from "node:assert/strict";
import test from "node:test";
import { batch, batchPage } from "../../src/contract/batches/batch.ts";
import { makeTestApp, problemIn } from "./test-app.ts";

const models = [
  { source: "https://models.example/a.onnx" },
  { source: "https://models.example/b.onnx", name: "b" },
];
const targets = ["cpu", "cpu-int8"];

test("POST /batches makes a job for every pair of model and target", async (t) => {
  const { ask, submitted } = await makeTestApp(t);
  const answer = await ask("POST /v1/batches", {
    body: { models, targets, suite: "nightly", labels: { a: "b" } },
  });
  assert.equal(answer.status, 202);
  const made = batch.parse(await answer.json());
  assert.equal(answer.headers.get("location"), `/v1/batches/${made.id}`);
  const pairs = made.jobs.map((job) => [job.model, job.target]);
  assert.deepEqual(pairs, [
    ["a.onnx", "cpu"],
    ["a.onnx", "cpu-int8"],
    ["b", "cpu"],
    ["b", "cpu-int8"],
  ]);
  assert.deepEqual(
    submitted,
    made.jobs.map(({ id }) => id),
  );
  assert.equal(made.name, "nightly");
  assert.deepEqual(await (await ask(`GET /v1/batches/${made.id}`)).json(), made);
  const listed = batchPage.parse(await (await ask("GET /v1/batches?suite=nightly")).json());
  assert.deepEqual(
    listed.batches.map(({ id }) => id),
    [made.id],
  );
});

test("POST /batches names everything that it cannot do and makes nothing", async (t) => {
  const { ask, submitted } = await makeTestApp(t);
  const body = {
    models: [models[0], { source: "file:///etc/passwd" }],
    targets: ["cpu", "gpu", "npu"],
  };
  const problem = await problemIn(await ask("POST /v1/batches", { body }));
  assert.equal(problem.code, "unknown_target");
  const pointers = problem.errors?.map(({ pointer }) => pointer);
  assert.deepEqual(pointers, ["/targets/1", "/targets/2", "/models/1/source"]);
  assert.deepEqual(submitted, []);
});

test("POST /batches refuses a target that is named twice and more than 2,000 jobs", async (t) => {
  const { ask } = await makeTestApp(t);
  const twice = await problemIn(
    await ask("POST /v1/batches", { body: { models, targets: ["cpu", "cpu"] } }),
  );
  assert.deepEqual(
    twice.errors?.map(({ pointer }) => pointer),
    ["/targets"],
  );
  const many = { models: Array.from({ length: 1000 }, () => models[0]), targets: ["a", "b", "c"] };
  const problem = await problemIn(await ask("POST /v1/batches", { body: many }));
  assert.deepEqual(
    problem.errors?.map(({ pointer }) => pointer),
    ["/models"],
  );
});

const revision = { sha: "a".repeat(40), branch: "main", recordBaseline: true };

test("POST /batches refuses jobs that are larger together than any service could take", async (t) => {
  const app = await makeTestApp(t);
  const exclude = Array.from({ length: 256 }, (_, i) => `${i}`.padEnd(240, "漢"));
  const overrides = exclude.map((match) => ({ match, scheme: "int8-weight" }));
  const submit = (length: number) => {
    const models = Array.from({ length }, (_, i) => {
      return { source: `https://models.example/${i}.onnx`, name: `m${i}` };
    });
    const body = { models, targets: ["cpu", "cpu-int8"], recipe: { exclude, overrides } };
    return app.ask("POST /v1/batches", { body });
  };
  const before = process.cpuUsage();
  const { code, errors } = await problemIn(await submit(1000));
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 1_000_000, `${user + system} µs`);
  assert.equal(code, "validation_failed");
  assert.match(errors?.[0]?.message ?? "", /^Makes jobs with \d+ bytes .* of 16777216 at most/);
  assert.deepEqual(app.submitted, []);
  assert.equal((await submit(10)).status, 202);
});

test("POST /batches records baselines only for those who may write them", async (t) => {
  const { ask, tokenFor, submitted } = await makeTestApp(t);
  const body = { models, targets, suite: "nightly", revision };
  const problem = await problemIn(
    await ask("POST /v1/batches", { body, token: await tokenFor("jobs:write") }),
  );
  assert.deepEqual([problem.code, submitted.length], ["missing_scope", 0]);
  assert.match(problem.detail, /"baselines:write"/);
  const token = await tokenFor("jobs:write", "baselines:write");
  const made = batch.parse(await (await ask("POST /v1/batches", { body, token })).json());
  assert.deepEqual(made.revision, revision);
  const others = { ...body, revision: { sha: revision.sha } };
  const answer = await ask("POST /v1/batches", {
    body: others,
    token: await tokenFor("jobs:write"),
  });
  assert.deepEqual(batch.parse(await answer.json()).revision, {
    sha: revision.sha,
    recordBaseline: false,
  });
});

const wrongRevisions: readonly [string, object, string][] = [
  ["without a commit", { revision: {} }, "/revision/sha"],
  ["with a commit in capitals", { revision: { sha: "A".repeat(40) } }, "/revision/sha"],
  [
    "with a base without a branch",
    { revision: { ...revision, base: {} } },
    "/revision/base/branch",
  ],
  ["that records baselines without a suite", { revision, suite: undefined }, "/revision"],
  [
    "that records baselines without a branch",
    { revision: { ...revision, branch: undefined } },
    "/revision",
  ],
  ["of models with the same name", { revision, models: [...models, models[0]] }, "/models/2/name"],
];

for (const [what, fields, pointer] of wrongRevisions) {
  test(`POST /batches refuses a revision ${what}`, async (t) => {
    const { ask, submitted } = await makeTestApp(t);
    const problem = await problemIn(
      await ask("POST /v1/batches", {
        body: { models, targets, suite: "nightly", revision, ...fields },
      }),
    );
    assert.deepEqual(
      [problem.code, problem.errors?.map((field) => field.pointer), submitted.length],
      ["validation_failed", [pointer], 0],
    );
  });
}

test("a batch is cancelled with its jobs, and again", async (t) => {
  const { ask, records } = await makeTestApp(t);
  const made = batch.parse(
    await (await ask("POST /v1/batches", { body: { models, targets } })).json(),
  );
  for (let i = 0; i < 2; i++) {
    const answer = await ask(`POST /v1/batches/cancel/${made.id}`);
    assert.equal(answer.status, 200);
    assert.equal(batch.parse(await answer.json()).counts.Cancelled, 4);
  }
  for (const { id } of made.jobs) {
    assert.equal((await records.jobs.find("default", id))?.cancelledBy?.name, "test");
  }
});

test("a batch that does not exist is not found", async (t) => {
  const { ask } = await makeTestApp(t);
  const id = `batch-${"0".repeat(26)}`;
  for (const call of [`GET /v1/batches/${id}`, `POST /v1/batches/cancel/${id}`]) {
    assert.equal((await problemIn(await ask(call))).code, "not_found", call);
  }
});
