import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { maxArtifacts } from "../../src/contract/jobs/artifact.ts";
import { job as jobSchema, jobDetail } from "../../src/contract/jobs/job.ts";
import { beginTestWorker, logEvent, makeTestApp, problemIn, startJob } from "./test-app.ts";

test("GET /jobs/{id} sends a job again only when it has changed", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const first = await app.ask(`GET /v1/jobs/${id}`);
  const etag = first.headers.get("etag") ?? "";
  assert.match(etag, /^"[\w-]{43}"$/);
  const headers = { "if-none-match": etag };
  const same = await app.ask(`GET /v1/jobs/${id}`, { headers });
  assert.equal(same.status, 304);
  assert.equal(same.headers.get("etag"), etag);
  assert.equal(await same.text(), "");
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  const changed = await app.ask(`GET /v1/jobs/${id}`, { headers });
  assert.equal(changed.status, 200);
  assert.notEqual(changed.headers.get("etag"), etag);
});

test("Prefer: wait answers when the job has ended", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const waiting = app.ask(`GET /v1/jobs/${id}`, { headers: { prefer: "wait=30" } });
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  await app.records.attempts.end(id, 1, { error: null, lines: [] });
  const answer = await waiting;
  assert.equal(answer.headers.get("preference-applied"), "wait=30");
  assert.equal(jobDetail.parse(await answer.json()).status, "Cancelled");
});

test("Prefer: wait with If-None-Match answers at the next change", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const etag = (await app.ask(`GET /v1/jobs/${id}`)).headers.get("etag") ?? "";
  const headers = { prefer: "wait=30", "if-none-match": etag };
  const waiting = app.ask(`GET /v1/jobs/${id}`, { headers });
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  const answer = await waiting;
  assert.equal(answer.status, 200);
  assert.equal(jobDetail.parse(await answer.json()).status, "Sharding");
});

test("Prefer: wait answers with what there is when the time is over", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const answer = await app.ask(`GET /v1/jobs/${id}`, { headers: { prefer: "wait=0" } });
  assert.equal(answer.status, 200);
  assert.equal(jobDetail.parse(await answer.json()).status, "Pending");
});

test("a thousand requests that wait for one job read it together", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  const blob = await worker.store("the same for all");
  for (let first = 0; first < maxArtifacts; first += 500) {
    await worker.report(
      ...Array.from({ length: Math.min(500, maxArtifacts - first) }, (_, i) => {
        const name = `${first + i}`.padEnd(200, "x");
        return { type: "artifact", artifact: { name, kind: "weights", ...blob } } as const;
      }),
    );
  }
  const headers = { prefer: "wait=60" };
  const waiting = Array.from({ length: 1000 }, () => app.ask(`GET /v1/jobs/${id}`, { headers }));
  await delay(1);
  const read = t.mock.method(app.records.jobs, "findText");
  await worker.report(logEvent("a change"));
  await delay(1);
  await worker.report({ type: "result", outcome: "Failed" });
  const [first, ...others] = await Promise.all(
    waiting.map(async (answer) => (await answer).text()),
  );
  assert.equal(jobDetail.parse(JSON.parse(first ?? "")).status, "Failed");
  assert.ok(others.every((text) => text === first));
  assert.ok(read.mock.callCount() <= 4, `${read.mock.callCount()} reads`);
});

test("what is read for one request is not sent to one that asks after a change", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const before = app.ask(`GET /v1/jobs/${id}`);
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  const after = await app.ask(`GET /v1/jobs/${id}`);
  assert.equal(jobDetail.parse(await after.json()).status, "Cancelled");
  assert.equal((await before).status, 200);
});

test("POST /jobs/{id}/retry starts the same job anew, once for each key", async (t) => {
  const app = await makeTestApp(t);
  const former = await startJob(app, {
    target: "cpu-int8",
    recipe: { preset: "vnni", evaluation: { samples: 3 } },
    gates: { maxSizeRatio: 0.5 },
    labels: { team: "vision" },
    deadlineSeconds: 60,
  });
  const path = `POST /v1/jobs/${former.id}/retry`;
  const early = await problemIn(await app.ask(path));
  assert.equal(early.code, "job_unfinished");
  await app.ask(`POST /v1/jobs/cancel/${former.id}`);
  const headers = { "idempotency-key": "again" };
  const answer = await app.ask(path, { headers });
  assert.equal(answer.status, 202);
  const made = jobSchema.parse(await answer.json());
  assert.equal(answer.headers.get("location"), `/v1/jobs/${made.id}`);
  assert.notEqual(made.id, former.id);
  const { model, target, recipe, gateLimits, labels, deadlineSeconds, name, kind } = made;
  assert.deepEqual(
    { model, target, recipe, gateLimits, labels, deadlineSeconds, name, kind },
    {
      model: former.model,
      target: former.target,
      recipe: former.recipe,
      gateLimits: former.gateLimits,
      labels: former.labels,
      deadlineSeconds: former.deadlineSeconds,
      name: former.name,
      kind: former.kind,
    },
  );
  assert.equal(made.status, "Pending");
  assert.deepEqual(app.submitted, [former.id, made.id]);
  const repeated = await app.ask(path, { headers });
  assert.equal(jobSchema.parse(await repeated.json()).id, made.id);
});
