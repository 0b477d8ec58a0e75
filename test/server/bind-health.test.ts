import assert from "node:assert/strict";
import test from "node:test";
import { findFreePort } from "../support/find-free-port.ts";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";
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
  const started = 'method="POST",route="/v1/compress",status="202"';
  assert.match(text, new RegExp(`^mos_http_request_seconds_count\\{${started}\\} 1$`, "m"));
});

test("a service whose records fail is not ready, and its answers say nothing of the inside", async (t) => {
  const { ask, records, logged } = await makeTestApp(t);
  await records.close();
  const answer = await ask("GET /readyz", { token: null });
  assert.equal(answer.status, 503);
  assert.ok(logged.some((line) => line.includes("A request failed")));
});

test("metrics are on a port of their own where it is set, and not on the public one", async (t) => {
  const port = await findFreePort();
  const environment = { MOS_HEALTH_PORT: String(port) };
  const { baseUrl } = await startRunningService(t, { environment });
  const statusOf = async (url: string) => (await fetch(url)).status;
  const root = new URL("/", baseUrl).href;
  assert.equal(await statusOf(`${root}healthz`), 200);
  assert.equal(await statusOf(`${root}metrics`), 404);
  assert.equal(await statusOf(`${root}metric%73`), 404);
  for (const path of ["healthz", "readyz", "metrics"]) {
    assert.equal(await statusOf(`http://127.0.0.1:${port}/${path}`), 200, path);
  }
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const unknown = /mos_http_request_seconds_count\{method="GET",route="none",status="404"\} 2/;
  assert.match(metrics, unknown);
  assert.equal(await statusOf(`http://127.0.0.1:${port}/v1/jobs`), 404);
});

test("workers are answered on a port of their own where it is set, and on no other", async (t) => {
  const port = await findFreePort();
  const environment = { MOS_WORKER_PORT: String(port) };
  const { baseUrl, client } = await startRunningService(t, { environment });
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const body = { model: { source }, target: "cpu", dryRun: true };
  const { id } = await client.call("startCompression", { body });
  await Array.fromAsync(client.followLogs(id));
  assert.equal((await client.call("getJob", { params: { id } })).status, "Completed");

  const statusOf = async (path: string, origin: string) =>
    (await fetch(new URL(path, origin))).status;
  const own = `http://127.0.0.1:${port}`;
  assert.equal(await statusOf(`/worker/v1/jobs/${id}`, own), 401);
  assert.equal(await statusOf(`/worker/v1/jobs/${id}`, baseUrl), 404);
  assert.equal(await statusOf("/v1/jobs", own), 404);
});
