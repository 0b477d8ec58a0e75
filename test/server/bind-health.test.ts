import assert from "node:assert/strict";
import test from "node:test";
import { makeTestApp, startJob } from "./test-app.ts";

test("probes and monitoring need no token", async (t) => {
  const app = await makeTestApp(t);
  await startJob(app);
  for (const path of ["/healthz", "/readyz"]) {
    assert.equal((await app.ask(`GET ${path}`, { token: null })).status, 200, path);
  }
  const answer = await app.ask("GET /metrics", { token: null });
  assert.match(answer.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await answer.text();
  assert.match(text, /^mos_jobs\{status="Pending"\} 1$/m);
  assert.match(text, /^mos_http_requests_total\{method="POST",status="202"\} 1$/m);
});

test("a service whose records fail is not ready, and its answers say nothing of the inside", async (t) => {
  const { ask, records, logged } = await makeTestApp(t);
  await records.close();
  const answer = await ask("GET /readyz", { token: null });
  assert.equal(answer.status, 503);
  assert.ok(logged.some((line) => line.includes("A request failed")));
});
