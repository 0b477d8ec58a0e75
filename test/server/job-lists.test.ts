import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { jobCounts, jobPage, jobSummaryPage } from "../../src/contract/jobs/job-lists.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob, type TestApp } from "./test-app.ts";

async function listSummaries({ ask }: TestApp, query = "") {
  const answer = await ask(`GET /v1/jobs/summaries${query}`);
  assert.equal(answer.status, 200);
  return jobSummaryPage.parse(await answer.json());
}

test("GET /jobs/summaries gives a row of each job, as its telemetry is now", async (t) => {
  const app = await makeTestApp(t);
  const job = await startJob(app, { labels: { team: "vision" } });
  const { id, createdAt } = job;
  const worker = await beginTestWorker(app, id);
  await worker.report(
    { type: "status", status: "Sharding" },
    {
      type: "telemetry",
      telemetry: {
        progress: { fraction: 0.25, message: "Reading" },
        size: { originalBytes: 100, resultBytes: 40, ratio: 0.4, predicted: false },
      },
    },
  );
  const { jobs } = await listSummaries(app, "?label=team=vision");
  assert.deepEqual(jobs, [
    {
      id,
      kind: "compress",
      name: "detector.onnx for cpu",
      status: "Sharding",
      statusReason: "sharding",
      statusMessage: "The worker fetches the model and shards its weights",
      batchId: null,
      target: "cpu",
      dryRun: false,
      labels: { team: "vision" },
      createdBy: job.createdBy,
      createdAt,
      updatedAt: createdAt,
      startedAt: createdAt,
      finishedAt: null,
      model: "detector.onnx",
      scheme: job.recipe.scheme,
      granularity: job.recipe.granularity,
      blockSize: job.recipe.blockSize,
      progress: { fraction: 0.25, message: "Reading" },
      gatesFailed: false,
      figures: {
        originalBytes: 100,
        resultBytes: 40,
        sizeRatio: 0.4,
        sqnrDb: null,
        cosine: null,
        latencyRatio: null,
        latencyRatioLow: null,
        latencyRatioHigh: null,
        latencyMs: null,
      },
      gates: [],
      warnings: 0,
      baseline: null,
    },
  ]);
});

test("a summary has the interval of a ratio, and its gates", async (t) => {
  const app = await makeTestApp(t);
  const limits = { maxSizeRatio: 0.5, minCosine: 0.9, maxLatencyRatio: 0.8 };
  const { id } = await startJob(app, { gates: { ...limits, warnGates: ["minCosine"] } });
  const worker = await beginTestWorker(app, id);
  const timed = { p50Ms: 10, runs: 100 };
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    {
      type: "telemetry",
      telemetry: {
        size: { originalBytes: 100, resultBytes: 40, ratio: 0.4, predicted: false },
        latency: { original: timed, result: timed, ratio: 1, ratioLow: 0.9, ratioHigh: 1.1 },
      },
    },
    { type: "result", outcome: "Completed" },
  );
  const [job] = (await listSummaries(app)).jobs;
  assert.deepEqual([job?.figures.latencyRatioLow, job?.figures.latencyRatioHigh], [0.9, 1.1]);
  const baseline = null;
  const timing = { level: "fail", actual: 1, interval: { low: 0.9, high: 1.1 }, baseline } as const;
  assert.deepEqual(job?.gates, [
    { gate: "maxSizeRatio", limit: 0.5, level: "fail", actual: 0.4, baseline, passed: true },
    { gate: "minCosine", limit: 0.9, level: "warn", actual: null, baseline, passed: false },
    { gate: "maxLatencyRatio", limit: 0.8, ...timing, passed: false },
  ]);
});

test("a summary has neither the source of its model nor its recipe", async (t) => {
  const app = await makeTestApp(t);
  await startJob(app, { model: { source: "https://models.example/a.onnx?signature=secret" } });
  const short = await (await app.ask("GET /v1/jobs/summaries")).text();
  assert.doesNotMatch(short, /models\.example|recipe/);
});

test("pages of summaries follow one another as pages of jobs do", async (t) => {
  const app = await makeTestApp(t);
  const made: string[] = [];
  for (let i = 0; i < 3; i++) {
    app.advance(1);
    made.unshift((await startJob(app)).id);
  }
  const first = await listSummaries(app, "?limit=2");
  const second = await listSummaries(app, `?limit=2&cursor=${first.nextCursor}`);
  assert.deepEqual(
    [...first.jobs, ...second.jobs].map(({ id }) => id),
    made,
  );
  assert.equal(second.nextCursor, null);
});

test("jobs from before summaries were stored have the same ones", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "lists-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "service.sqlite");
  const app = await makeTestApp(t, { database: path });
  await startJob(app);
  await startJob(app);
  const before = await listSummaries(app);
  const database = new DatabaseSync(path);
  database.exec(`update jobs set summary = null where id = '${before.jobs[0]?.id}'`);
  database.close();
  assert.deepEqual(await listSummaries(app), before);
});

test("GET /jobs gives whole jobs only", async (t) => {
  const app = await makeTestApp(t);
  const { errors } = await problemIn(await app.ask("GET /v1/jobs?view=summary"));
  assert.deepEqual(
    errors?.map(({ pointer }) => pointer),
    ["query/view"],
  );
  const job = await startJob(app);
  const { jobs } = jobPage.parse(await (await app.ask("GET /v1/jobs")).json());
  assert.deepEqual(jobs, [job]);
});

test("summaries have the filters of jobs", async (t) => {
  const app = await makeTestApp(t);
  const first = await startJob(app, { labels: { team: "vision" } });
  const second = await startJob(app, { target: "cpu-int8" });
  await app.ask(`POST /v1/jobs/cancel/${second.id}`);
  const source = encodeURIComponent("https://models.example/detector.onnx");
  for (const [query, wanted] of [
    ["", [second.id, first.id]],
    ["?status=Pending", [first.id]],
    ["?status=Pending&status=Cancelled", [second.id, first.id]],
    ["?target=cpu-int8", [second.id]],
    ["?label=team", [first.id]],
    [`?model=${source}&kind=quantize`, []],
    [`?batch=batch-${"0".repeat(26)}`, []],
  ] as const) {
    const { jobs } = await listSummaries(app, query);
    assert.deepEqual(
      jobs.map(({ id }) => id),
      wanted,
      query,
    );
  }
  const { code } = await problemIn(await app.ask("GET /v1/jobs/summaries?cursor=abc"));
  assert.equal(code, "invalid_cursor");
});

test("GET /jobs/counts counts each status of what a list would have", async (t) => {
  const app = await makeTestApp(t);
  const count = async (query: string) =>
    jobCounts.parse(await (await app.ask(`GET /v1/jobs/counts${query}`)).json()).counts;
  const first = await startJob(app, { labels: { team: "vision" } });
  await startJob(app, { labels: { team: "vision" }, target: "cpu-int8" });
  await startJob(app);
  await app.ask(`POST /v1/jobs/cancel/${first.id}`);
  const none = { Sharding: 0, Optimizing: 0, Completed: 0, Failed: 0, Cancelling: 0 };
  assert.deepEqual(await count(""), { ...none, Pending: 2, Cancelled: 1 });
  assert.deepEqual(await count("?label=team=vision"), { ...none, Pending: 1, Cancelled: 1 });
  assert.deepEqual(await count("?target=cpu-int8"), { ...none, Pending: 1, Cancelled: 0 });
  assert.deepEqual(await count("?model=detector.onnx"), { ...none, Pending: 2, Cancelled: 1 });
  const source = encodeURIComponent("https://models.example/detector.onnx");
  assert.deepEqual(await count(`?model=${source}&kind=compress`), {
    ...none,
    Pending: 2,
    Cancelled: 1,
  });
});
