import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ServiceError } from "../../src/contract/errors.ts";
import {
  createServiceConnection,
  type RequestTimeouts,
} from "../../src/worker/service-connection.ts";
import { findFreePort } from "../support/find-free-port.ts";
import { startPodService } from "./pod-service.ts";

const timeouts: RequestTimeouts = { start: 10_000, events: 10_000, files: 10_000, token: 10_000 };
const { signal } = new AbortController();

async function makeService(t: Parameters<typeof startPodService>[0]) {
  const service = await startPodService(t);
  const jobId = await service.createJob({ source: "https://models.test/net.onnx", name: "net" });
  service.tokens.set("good", { podUid: "pod", part: null });
  return { service, jobId };
}

test("a connection asks for its token at each request, even if there is none for a while", async (t) => {
  const { service, jobId } = await makeService(t);
  const tokens = ["unknown", undefined, "good"];
  const token = () => {
    const [next] = tokens.length > 1 ? tokens.splice(0, 1) : tokens;
    if (next === undefined) throw new Error("ENOENT: no such file");
    return next;
  };
  const connection = createServiceConnection({ url: service.url, jobId, token, timeouts });
  assert.equal((await connection.findAssignment(signal)).id, jobId);
});

test("a connection gives up a token that is refused for too long", async (t) => {
  const { service, jobId } = await makeService(t);
  const impatient = { ...timeouts, token: 200 };
  const connection = createServiceConnection({
    url: service.url,
    jobId,
    token: () => "unknown",
    timeouts: impatient,
  });
  await assert.rejects(connection.findAssignment(signal), { status: 401, code: "unauthorized" });
});

test("a connection says why it does not reach the service, as often as it shall", async () => {
  const stop = new AbortController();
  const reports: string[] = [];
  const connection = createServiceConnection({
    url: `http://127.0.0.1:${await findFreePort()}`,
    jobId: "job",
    token: () => "good",
    timeouts: { ...timeouts, start: Infinity },
    outageReports: {
      everyMs: 50,
      report(message) {
        if (reports.push(message) === 2) stop.abort();
      },
    },
  });
  await assert.rejects(connection.findAssignment(stop.signal));
  for (const report of reports)
    assert.match(report, /^The worker's requests have failed for \d+ s: connect ECONNREFUSED/);
});

test("a connection knows the answer that a job needs no worker", async (t) => {
  const { service, jobId } = await makeService(t);
  await service.records.jobs.cancel("default", jobId);
  const connection = createServiceConnection({
    url: service.url,
    jobId,
    token: () => "good",
    timeouts,
  });
  await assert.rejects(connection.findAssignment(signal), { status: 409, code: "job_finished" });
});

test("a connection that is asked to wait does so, however long it takes", async (t) => {
  const asked: number[] = [];
  const server = createServer((_request, answer) => {
    asked.push(performance.now());
    if (asked.length < 4) answer.writeHead(429, { "retry-after": asked.length === 1 ? "1" : "0" });
    answer.end(JSON.stringify({ nextSeq: 2, cancelled: false }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const connection = createServiceConnection({
    url: `http://127.0.0.1:${port}`,
    jobId: "job",
    token: () => "good",
    timeouts: { ...timeouts, events: 0 },
  });
  assert.equal((await connection.sendEvents([], signal)).nextSeq, 2);
  const [first = 0, second = 0] = asked;
  assert.ok(second - first >= 990, `${second - first} ms`);
});

test("events wait while the service's disk is full", async (t) => {
  const { service, jobId } = await makeService(t);
  const connection = createServiceConnection({
    url: service.url,
    jobId,
    token: () => "good",
    timeouts,
  });
  await connection.findAssignment(signal);
  const isFull = () => Promise.reject(new ServiceError("storage_full", "The disk is full"));
  t.mock.method(service.records.workers, "recordEvents").mock.mockImplementationOnce(isFull);
  const event = { type: "status", status: "Sharding", seq: 1, at: new Date().toISOString() };
  const answer = await connection.sendEvents([JSON.stringify(event)], signal);
  assert.equal(answer.nextSeq, 2);
  assert.equal((await service.find(jobId)).status, "Sharding");
});
