import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { job, jobDetail } from "../../src/contract/jobs/job.ts";
import { jobPage } from "../../src/contract/jobs/job-lists.ts";
import { makeTestApp, problemIn, startJob, beginTestWorker } from "./test-app.ts";
import { until } from "../support/until.ts";

const model = { source: "https://models.example/folder/detector.onnx?version=1" };

test("POST /compress makes a pending job and gives it to the executor", async (t) => {
  const { ask, submitted } = await makeTestApp(t);
  const body = { model, target: "cpu", gates: { maxSizeRatio: 0.5 }, labels: { team: "vision" } };
  const answer = await ask("POST /v1/compress", { body });
  assert.equal(answer.status, 202);
  const made = job.parse(await answer.json());
  assert.equal(answer.headers.get("location"), `/v1/jobs/${made.id}`);
  assert.deepEqual(submitted, [made.id]);
  assert.equal(made.kind, "compress");
  assert.equal(made.status, "Pending");
  assert.equal(made.model.name, "detector.onnx");
  assert.equal(made.name, "detector.onnx for cpu");
  assert.deepEqual(made.gateLimits, { maxSizeRatio: 0.5 });
  const found = await ask(`GET /v1/jobs/${made.id}`);
  assert.deepEqual(await found.json(), { ...made, queuePosition: 1 });
});

test("a job's recipe is the request's over the preset's over the target's", async (t) => {
  const app = await makeTestApp(t);
  const byTarget = await startJob(app, { target: "cpu-int8" });
  assert.equal(byTarget.recipe.scheme, "int8-dynamic");
  assert.equal(byTarget.recipe.reduceRange, true);
  const byPreset = await startJob(app, { target: "cpu-int8", recipe: { preset: "vnni" } });
  assert.equal(byPreset.recipe.reduceRange, false);
  const byRequest = await startJob(app, {
    target: "cpu-int8",
    recipe: { preset: "vnni", reduceRange: true },
  });
  assert.equal(byRequest.recipe.reduceRange, true);
});

const refused: [string, object, string, string][] = [
  ["a target that does not exist", { target: "gpu" }, "unknown_target", "/target"],
  [
    "a preset that the target lacks",
    { recipe: { preset: "fast" } },
    "validation_failed",
    "/recipe/preset",
  ],
  [
    "a preset with the name of an object's method",
    { recipe: { preset: "constructor" } },
    "validation_failed",
    "/recipe/preset",
  ],
  [
    "operators that the target lacks",
    { recipe: { scheme: "int4-weight", operators: "contrib" } },
    "recipe_unsupported",
    "/recipe/operators",
  ],
  [
    "a granularity that the target's scheme cannot have",
    { target: "cpu-int8", recipe: { granularity: "block" } },
    "recipe_unsupported",
    "/recipe/granularity",
  ],
  [
    "operators that the runtime of the dialect lacks",
    {
      target: "cpu-int8",
      recipe: { scheme: "int8-static", dialect: "tensorrt", calibration: { generated: true } },
    },
    "recipe_unsupported",
    "/recipe/operators",
  ],
  [
    "a latency gate for a runtime that is not the one here",
    {
      recipe: { scheme: "int8-static", dialect: "tensorrt", calibration: { generated: true } },
      gates: { maxLatencyRatio: 0.8 },
    },
    "recipe_unsupported",
    "/gates/maxLatencyRatio",
  ],
  [
    "a dry run of what only a search finds",
    { recipe: { auto: { minSqnrDb: 30 } }, dryRun: true },
    "recipe_unsupported",
    "/dryRun",
  ],
  [
    "an upload that is missing",
    { model: { source: `upload:sha256:${"0".repeat(64)}` } },
    "model_not_found",
    "/model/source",
  ],
  [
    "a file outside the allowed folders",
    { model: { source: "file:///etc/passwd" } },
    "model_source_refused",
    "/model/source",
  ],
  [
    "a private address",
    { model: { source: "https://169.254.169.254/m.onnx" } },
    "model_source_refused",
    "/model/source",
  ],
  [
    "a private IPv6 address",
    { model: { source: "https://[::1]/m.onnx" } },
    "model_source_refused",
    "/model/source",
  ],
  [
    "an address without TLS",
    { model: { source: "http://models.example/m.onnx" } },
    "model_source_refused",
    "/model/source",
  ],
  ["no URL", { model: { source: "https://" } }, "validation_failed", "/model/source"],
  [
    "evaluation data from a private address",
    { recipe: { evaluation: { data: "https://10.0.0.1/samples.npz" } } },
    "model_source_refused",
    "/recipe/evaluation/data",
  ],
];

for (const [what, change, code, pointer] of refused) {
  test(`POST /compress refuses ${what} and makes no job`, async (t) => {
    const { ask, submitted } = await makeTestApp(t);
    const problem = await problemIn(
      await ask("POST /v1/compress", { body: { model, target: "cpu", ...change } }),
    );
    assert.equal(problem.code, code);
    assert.deepEqual(
      problem.errors?.map((field) => field.pointer),
      [pointer],
    );
    assert.deepEqual(submitted, []);
    assert.deepEqual(jobPage.parse(await (await ask("GET /v1/jobs")).json()).jobs, []);
  });
}

test("an unknown target is refused with the names of those there are", async (t) => {
  const { ask } = await makeTestApp(t);
  const problem = await problemIn(
    await ask("POST /v1/compress", { body: { model, target: "gpu" } }),
  );
  assert.equal(problem.detail, 'Target "gpu" is not one of cpu, cpu-int8, cpu-llm');
});

test("a file under an allowed folder is taken, and one that does not exist is not", async (t) => {
  const app = await makeTestApp(t);
  const file = join(app.directory, "a model.onnx");
  const source = pathToFileURL(file).href;
  const body = { model: { source }, target: "cpu" };
  assert.equal(
    (await problemIn(await app.ask("POST /v1/compress", { body }))).code,
    "model_not_found",
  );
  await writeFile(file, "");
  assert.equal((await startJob(app, { model: { source } })).model.name, "a-20model.onnx");
});

test("GET /jobs gives pages of the newest first, each job once", async (t) => {
  const app = await makeTestApp(t);
  const made: string[] = [];
  for (let i = 0; i < 5; i++) {
    app.advance(1);
    made.unshift((await startJob(app)).id);
  }
  const seen: string[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page = jobPage.parse(await (await app.ask(`GET /v1/jobs?limit=2${query}`)).json());
    seen.push(...page.jobs.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  assert.deepEqual(seen, made);
});

test("GET /jobs refuses a cursor that it did not give", async (t) => {
  const { ask } = await makeTestApp(t);
  assert.equal((await problemIn(await ask("GET /v1/jobs?cursor=abc"))).code, "invalid_cursor");
});

test("a job that does not exist is not found", async (t) => {
  const { ask } = await makeTestApp(t);
  const id = `job-${"0".repeat(26)}`;
  for (const call of [
    `GET /v1/jobs/${id}`,
    `POST /v1/jobs/cancel/${id}`,
    `GET /v1/jobs/${id}/logs`,
    `GET /v1/jobs/${id}/artifacts`,
  ]) {
    assert.equal((await problemIn(await ask(call))).code, "not_found", call);
  }
});

test("a job that waits is cancelled at once, and again", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  for (let i = 0; i < 2; i++) {
    const answer = await app.ask(`POST /v1/jobs/cancel/${id}`);
    assert.equal(answer.status, 200);
    const { status, cancelledBy } = job.parse(await answer.json());
    assert.deepEqual([status, cancelledBy?.name], ["Cancelled", "test"]);
  }
});

test("a job that is worked on is cancelling until its worker is gone", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  const answer = await app.ask(`POST /v1/jobs/cancel/${id}`);
  assert.equal(answer.status, 202);
  assert.equal(job.parse(await answer.json()).status, "Cancelling");
  assert.equal((await worker.report({ type: "result", outcome: "Cancelled" })).cancelled, true);
});

test("a job that has ended cannot be cancelled", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  const error = { code: "model_invalid", message: "The file is not a model" } as const;
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "result", outcome: "Failed", error },
  );
  const problem = await problemIn(await app.ask(`POST /v1/jobs/cancel/${id}`));
  assert.equal(problem.code, "job_finished");
  assert.match(problem.detail, /is Failed/);
});

test("POST /quantize with Prefer: wait answers as soon as the job has ended", async (t) => {
  const app = await makeTestApp(t);
  const body = { model, target: "cpu" };
  const waiting = app.ask("POST /v1/quantize", {
    body,
    headers: { prefer: "respond-async, wait=60" },
  });
  await until("the job is submitted", () => app.submitted.length > 0);
  const worker = await beginTestWorker(app, app.submitted[0] ?? "");
  const error = { code: "model_invalid", message: "The file is not a model" } as const;
  await worker.report(
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Failed", error },
  );
  const answer = await waiting;
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("preference-applied"), "wait=60");
  assert.equal(job.parse(await answer.json()).status, "Failed");
});

test("POST /quantize answers with the unfinished job when the time is up", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask("POST /v1/quantize", {
    body: { model, target: "cpu" },
    headers: { prefer: "wait=0" },
  });
  assert.equal(answer.status, 202);
  assert.equal(answer.headers.get("preference-applied"), "wait=0");
});

for (const prefer of [undefined, "wait", "wait=soon", "return=minimal", "await=5"]) {
  test(`POST /quantize does not wait for Prefer "${prefer}"`, async (t) => {
    const { ask } = await makeTestApp(t);
    const headers = prefer === undefined ? {} : { prefer };
    const answer = await ask("POST /v1/quantize", { body: { model, target: "cpu" }, headers });
    assert.equal(answer.status, 202);
    assert.equal(answer.headers.get("preference-applied"), null);
  });
}

test("a job that waits reports its place in the queue, one that ended has none", async (t) => {
  const app = await makeTestApp(t);
  const [first, second] = [await startJob(app), await startJob(app)];
  const readPosition = async (id: string) =>
    jobDetail.parse(await (await app.ask(`GET /v1/jobs/${id}`)).json()).queuePosition;
  assert.deepEqual([await readPosition(first.id), await readPosition(second.id)], [1, 2]);
});
