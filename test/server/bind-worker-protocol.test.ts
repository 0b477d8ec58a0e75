import assert from "node:assert/strict";
import test from "node:test";
import { job } from "../../src/contract/jobs/job.ts";
import { assignment } from "../../src/contract/worker-protocol/messages.ts";
import { hashSecret } from "../../src/auth/access-token.ts";
import { logEvent, makeTestApp, problemIn, startJob, beginTestWorker } from "./test-app.ts";

test("a worker gets its assignment", async (t) => {
  const app = await makeTestApp(t);
  const started = await startJob(app);
  const { secret } = await beginTestWorker(app, started.id);
  const answer = await app.ask(`GET /worker/v1/jobs/${started.id}`, { token: secret });
  const assigned = assignment.parse(await answer.json());
  assert.equal(assigned.id, started.id);
  assert.deepEqual(assigned.recipe, started.recipe);
  assert.equal(assigned.target.name, "cpu");
  assert.equal(assigned.attempt, 1);
  assert.equal(assigned.limits.maxModelBytes, 1000);
});

test("what a worker reports changes its job, and what it reports twice is recorded once", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  assert.equal(
    (await worker.report({ type: "status", status: "Sharding" }, logEvent("one"))).nextSeq,
    3,
  );
  const body = { events: [{ ...logEvent("one"), seq: 2, at: "2026-01-01T00:00:00.000Z" }] };
  const answer = await app.ask(`POST /worker/v1/jobs/${id}/events`, { token: worker.secret, body });
  assert.deepEqual(await answer.json(), { nextSeq: 3, cancelled: false });
  assert.equal(job.parse(await (await app.ask(`GET /v1/jobs/${id}`)).json()).status, "Sharding");
  assert.equal(await (await app.ask(`GET /v1/jobs/${id}/logs?follow=false`)).text(), "one\n");
});

test("a worker's token is good only for its job, and an access token for no job", async (t) => {
  const app = await makeTestApp(t);
  const [mine, other] = [await startJob(app), await startJob(app)];
  const { secret } = await beginTestWorker(app, mine.id);
  await beginTestWorker(app, other.id);
  for (const token of [secret, await app.tokenFor("admin")]) {
    assert.equal((await app.ask(`GET /worker/v1/jobs/${other.id}`, { token })).status, 401);
  }
  assert.equal((await app.ask("GET /v1/jobs", { token: secret })).status, 401);
});

test("a worker of an earlier attempt is refused, and asked to stop", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await app.records.attempts.end(id, 1, { error: null, lines: [] });
  await app.records.attempts.begin(id, hashSecret("another"));
  const answer = await app.ask(`GET /worker/v1/jobs/${id}`, { token: worker.secret });
  assert.equal((await problemIn(answer)).code, "job_finished");
  assert.equal((await worker.report(logEvent("late"))).cancelled, true);
});

test("events that are not of the protocol are refused with their fields", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const { secret } = await beginTestWorker(app, id);
  const body = {
    events: [{ seq: 1, at: "2026-01-01T00:00:00Z", type: "status", status: "Completed" }],
  };
  const problem = await problemIn(
    await app.ask(`POST /worker/v1/jobs/${id}/events`, { token: secret, body }),
  );
  assert.deepEqual(
    problem.errors?.map(({ pointer }) => pointer),
    ["/events/0/status"],
  );
});
