import assert from "node:assert/strict";
import test from "node:test";
import { makeTestApp, problemIn, startJob } from "./test-app.ts";

const model = { source: "https://models.example/detector.onnx" };

test("a project with many waiting jobs gets no more, until one of them ends", async (t) => {
  const app = await makeTestApp(t, { maxWaitingJobs: 3 });
  const { id } = await startJob(app);
  const body = {
    models: [model, { ...model, name: "b" }, { ...model, name: "c" }],
    targets: ["cpu"],
  };
  const refused = await app.ask("POST /v1/batches", { body });
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "60");
  assert.equal(refused.headers.get("ratelimit-policy"), '"waiting-jobs";q=3');
  assert.equal(refused.headers.get("ratelimit"), '"waiting-jobs";r=0;t=60');
  assert.equal((await problemIn(refused)).code, "too_many_jobs");
  assert.equal(app.submitted.length, 1);
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  assert.equal((await app.ask("POST /v1/batches", { body })).status, 202);
  const one = await app.ask("POST /v1/compress", { body: { model, target: "cpu" } });
  assert.equal((await problemIn(one)).code, "too_many_jobs");
});

test("requests beyond a project's number a minute are told when to come again", async (t) => {
  const app = await makeTestApp(t, { requestsPerMinute: 30 });
  for (let i = 0; i < 30; i++) assert.equal((await app.ask("GET /v1/targets")).status, 200);
  const refused = await app.ask("GET /v1/targets");
  assert.equal(refused.headers.get("retry-after"), "2");
  assert.equal(refused.headers.get("ratelimit-policy"), '"requests";q=30;w=60');
  assert.equal(refused.headers.get("ratelimit"), '"requests";r=0;t=2');
  assert.equal((await problemIn(refused)).code, "too_many_requests");
  app.advance(2000);
  assert.equal((await app.ask("GET /v1/targets")).status, 200);
  assert.equal((await app.ask("GET /v1/targets")).status, 429);
  app.advance(-3_600_000);
  assert.equal((await app.ask("GET /v1/targets")).status, 429);
});

test("an address that floods the exchange of tokens is refused, and no other one", async (t) => {
  const { app } = await makeTestApp(t, { exchangesPerMinute: 2 });
  const exchange = (remoteAddress: string) =>
    app.request(
      "/v1/tokens/exchange",
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"token":"x"}',
      },
      { incoming: { socket: { remoteAddress } } },
    );
  const statuses = [];
  for (const address of ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"]) {
    statuses.push((await exchange(address)).status);
  }
  assert.deepEqual(statuses, [403, 403, 429, 403]);
});
