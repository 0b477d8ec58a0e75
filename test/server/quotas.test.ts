import assert from "node:assert/strict";
import test from "node:test";
import { usage as usageSchema } from "../../src/contract/people/usage.ts";
import { proposal, tenantToken } from "./tenant-tokens.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob, type TestApp } from "./test-app.ts";

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

test("requests beyond a project's number a minute are answered with when to come again", async (t) => {
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
  app.advance(2000);
  assert.equal((await app.ask("GET /v1/targets")).status, 200, "as if the hour had not been");
});

async function readUsage({ ask }: TestApp) {
  return usageSchema.parse(await (await ask("GET /v1/usage")).json());
}

test("a project sees how much of its quotas it uses", async (t) => {
  const app = await makeTestApp(t, {
    maxWaitingJobs: 3,
    maxStoredBytes: 100,
    requestsPerMinute: 30,
  });
  const { id } = await startJob(app);
  await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  await worker.store("result");
  assert.deepEqual(await readUsage(app), {
    project: "default",
    waitingJobs: { used: 1, limit: 3 },
    runningJobs: { used: 1, limit: null },
    storedBytes: { used: 6, limit: 100 },
    requestsPerMinute: { used: 3, limit: 30 },
  });
  app.advance(60_000);
  assert.equal((await readUsage(app)).requestsPerMinute.used, 1);
  const { token } = await tenantToken(app, { workflow: proposal });
  assert.equal((await app.ask("GET /v1/usage", { token })).status, 403);
});

test("a job may not ask for more time than the service gives", async (t) => {
  const { ask } = await makeTestApp(t);
  const refused = await ask("POST /v1/compress", {
    body: { model, target: "cpu", deadlineSeconds: 86_401 },
  });
  const problem = await problemIn(refused);
  assert.deepEqual(problem.errors, [
    { pointer: "/deadlineSeconds", message: "Is 86401, and this service allows at most 86400" },
  ]);
  const body = { models: [model], targets: ["cpu"], deadlineSeconds: 86_400 };
  assert.equal((await ask("POST /v1/batches", { body })).status, 202);
  body.deadlineSeconds = 90_000;
  assert.equal((await ask("POST /v1/batches", { body })).status, 422);
});

/** The statuses of exchanges, each from an address, and for one where a proxy says so. */
async function exchange({ app }: TestApp, ...callers: readonly (readonly [string, string?])[]) {
  const statuses = [];
  for (const [remoteAddress, forwardedFor] of callers) {
    const headers = new Headers({ "content-type": "application/json" });
    if (forwardedFor !== undefined) headers.set("x-forwarded-for", forwardedFor);
    const init = { method: "POST", headers, body: '{"token":"x"}' };
    const env = { incoming: { socket: { remoteAddress } } };
    statuses.push((await app.request("/v1/tokens/exchange", init, env)).status);
  }
  return statuses;
}

test("an address that floods the exchange of tokens is refused, and no other one", async (t) => {
  const app = await makeTestApp(t, { exchangesPerMinute: 2 });
  const [one, other] = [["192.0.2.1"], ["192.0.2.2"]] as const;
  assert.deepEqual(await exchange(app, one, one, one, other), [403, 403, 429, 403]);
});

test("an address behind a trusted proxy has a limit of its own, and says itself no other one", async (t) => {
  const app = await makeTestApp(t, {
    exchangesPerMinute: 1,
    isTrustedProxy: (address) => address.startsWith("10."),
  });
  const [proxy, one, other] = ["10.0.0.1", "192.0.2.1", "192.0.2.2"];
  assert.deepEqual(
    await exchange(
      app,
      [proxy, one],
      [`::ffff:${proxy}`, one],
      [proxy, `192.0.2.9, ${one}, 10.0.0.2`],
      [proxy, other],
      [proxy, "unknown"],
      [proxy],
    ),
    [403, 429, 429, 403, 403, 429],
  );
  assert.deepEqual(
    await exchange(app, ["192.0.2.3", "192.0.2.4"], ["192.0.2.3", "192.0.2.5"]),
    [403, 429],
  );
});

test("all addresses of one IPv6 network are one", async (t) => {
  const app = await makeTestApp(t, { exchangesPerMinute: 1 });
  const callers = [["2001:db8:0:1::1"], ["2001:DB8::1:2:3:4:5"], ["2001:db8:0:2::1"]] as const;
  assert.deepEqual(await exchange(app, ...callers), [403, 429, 403]);
});
