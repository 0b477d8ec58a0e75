import assert from "node:assert/strict";
import test from "node:test";
import { batch } from "../../src/contract/batches/batch.ts";
import { limits } from "../../src/contract/limits.ts";
import { serviceStatus } from "../../src/contract/service-status.ts";
import { suiteHistory, suiteList } from "../../src/contract/batches/suite.ts";
import { makeNewBatch, makeNewJob, targets } from "../records/new-jobs.ts";
import { beginTestWorker, makeTestApp, problemIn, type TestApp } from "./test-app.ts";

const source = "https://models.example/detector.onnx";
const shas = ["a".repeat(40), "b".repeat(40)];

async function submit({ ask }: TestApp, sha: string, fields: object = {}) {
  const models = ["detector", "reader"].map((name) => ({ source, name }));
  const revision = { sha, branch: "main" };
  const body = {
    suite: "mobile/vision",
    revision,
    models,
    targets: ["cpu", "cpu-int8"],
    ...fields,
  };
  const answer = await ask("POST /v1/batches", { body });
  assert.equal(answer.status, 202);
  return batch.parse(await answer.json());
}

test("a suite's history has the figures of a model for each target over its commits", async (t) => {
  const app = await makeTestApp(t);
  const batches = [];
  for (const sha of shas) batches.push(await submit(app, sha));
  await submit(app, "c".repeat(40), { suite: "other" });
  const worker = await beginTestWorker(app, batches[1]?.jobs[0]?.id ?? "");
  const size = { originalBytes: 100, resultBytes: 40, ratio: 0.4, predicted: false };
  await worker.report({ type: "telemetry", telemetry: { size } });

  const list = suiteList.parse(await (await app.ask("GET /v1/suites")).json());
  assert.deepEqual(
    list.suites.map(({ name, batches: count }) => [name, count]),
    [
      ["other", 1],
      ["mobile/vision", 2],
    ],
  );
  const path = "GET /v1/suites/history?suite=mobile%2Fvision";
  const history = suiteHistory.parse(await (await app.ask(path)).json());
  assert.deepEqual([history.model, history.models], ["detector", ["detector", "reader"]]);
  assert.deepEqual(
    history.batches.map(({ id, revision }) => [id, revision?.sha]),
    batches.map(({ id }, index) => [id, shas[index]]),
  );
  assert.deepEqual(
    history.jobs.map(({ batchId, target, figures }) => [batchId, target, figures.sizeRatio]),
    batches.flatMap(({ id }, index) => [
      [id, "cpu", index === 1 ? 0.4 : null],
      [id, "cpu-int8", null],
    ]),
  );
  const newest = suiteHistory.parse(await (await app.ask(`${path}&limit=1&model=reader`)).json());
  assert.deepEqual(
    newest.jobs.map(({ model, batchId }) => [model, batchId]),
    [
      ["reader", batches[1]?.id],
      ["reader", batches[1]?.id],
    ],
  );
  const tooMany = await problemIn(await app.ask(`${path}&limit=101`));
  assert.deepEqual([tooMany.status, tooMany.errors?.[0]?.pointer], [422, "query/limit"]);
});

test("a suite's history has the newest job of each target, up to its limit", async (t) => {
  const app = await makeTestApp(t);
  const numbers = [...Array(limits.historyJobs + 1).keys()];
  const [target] = targets;
  assert.ok(target);
  const jobs = [...numbers, limits.historyJobs].map((number) =>
    makeNewJob({ target: { ...target, name: `cpu-${number}` } }),
  );
  const { records, ask } = app;
  const made = await records.batches.create("default", makeNewBatch({ suite: "vision", jobs }));
  const answer = await ask("GET /v1/suites/history?suite=vision");
  const ids = made.jobs.map(({ id }) => id);
  assert.deepEqual(
    suiteHistory.parse(await answer.json()).jobs.map(({ id }) => id),
    [...ids.slice(1, -2), ids.at(-1)],
  );
});

test("GET /status says how many jobs wait, and what the disk has left", async (t) => {
  const app = await makeTestApp(t);
  await submit(app, "a".repeat(40));
  app.advance(90_000);
  const status = serviceStatus.parse(await (await app.ask("GET /v1/status")).json());
  assert.equal(status.jobs.waiting, 4);
  assert.equal(Math.round(status.jobs.longestWaitSeconds), 90);
  assert.deepEqual(status.disk, { freeBytes: 1e9, totalBytes: 2e9, reserveBytes: 1e8 });
  const token = await app.tokenFor("jobs:read");
  assert.equal((await app.ask("GET /v1/status", { token })).status, 403);
});
