import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceError } from "../../src/contract/errors.ts";
import {
  createServiceConnection,
  type RequestTimeouts,
} from "../../src/worker/service-connection.ts";
import { startPodService } from "./pod-service.ts";

const timeouts: RequestTimeouts = { start: 10_000, events: 10_000, files: 10_000, token: 10_000 };
const { signal } = new AbortController();

async function makeService(t: Parameters<typeof startPodService>[0]) {
  const service = await startPodService(t);
  const jobId = await service.createJob({ source: "https://models.test/net.onnx", name: "net" });
  service.tokens.set("good", { podUid: "pod", part: null });
  return { service, jobId };
}

test("a connection asks for its token at each request, also where there is none for a while", async (t) => {
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
