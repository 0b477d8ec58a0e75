import assert from "node:assert/strict";
import { test } from "node:test";
import { workerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { createServiceBlobStore } from "../../src/storage/service-blob-store.ts";
import { createServiceConnection } from "../../src/worker/service-connection.ts";
import { workOnAssignment } from "../../src/worker/work-on-assignment.ts";
import { realModel } from "../support/real-models.ts";
import { startPodService } from "./pod-service.ts";

test("workOnAssignment() ends with the job's outcome though the service went away before it was reported", async (t) => {
  const service = await startPodService(t);
  const sha256 = await service.upload(realModel("ocr-orientation"));
  const model = { source: `upload:sha256:${sha256}`, name: "net" };
  const jobId = await service.createJob(model, { evaluation: { level: "none" } });
  service.tokens.set("token", { podUid: "pod", part: null });
  const timeouts = { start: 10_000, events: Infinity, files: 10_000, token: 0 };
  const connection = createServiceConnection({
    url: service.url,
    jobId,
    token: () => "token",
    timeouts,
  });
  const { signal } = new AbortController();
  const assignment = await connection.findAssignment(signal);
  // The files can be stored, but nothing can be reported any more.
  service.onRequest = (request) =>
    request.url?.endsWith("/events") === true && request.socket.destroy().destroyed;
  const printed: string[] = [];
  const end = await workOnAssignment(assignment, {
    connection,
    openBlobs: async () => createServiceBlobStore(connection.requestService),
    workDirectory: service.folder,
    signal,
    printLine: () => {},
    printError: (text) => assert.fail(text),
    recordEvent: (json) => printed.push(json),
    stopLimitMs: 300,
    deliveryLimitMs: 300,
    progressIntervalMs: 100,
    onCancelled: () => assert.fail("The job was not cancelled"),
    onFailure: (error) => assert.fail(String(error)),
  });
  assert.deepEqual(end, { outcome: "Completed", delivered: false });
  assert.equal((await service.find(jobId)).status, "Pending");
  const events = printed.map((json) => workerEvent.parse(JSON.parse(json)));
  await service.records.workers.recordFinalEvents(jobId, assignment.attempt, events);
  const job = await service.find(jobId);
  assert.equal(job.status, "Completed");
  assert.deepEqual(
    job.artifacts.map(({ name }) => name),
    ["model.onnx", "graph.json", "report.json"],
  );
});
