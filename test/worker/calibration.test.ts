import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { writeFloatsNpz } from "../support/npz.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { exitCode, makeJob, summarizeEvents } from "./worker-process.ts";

/** A product of 64 inputs, and a file of samples of one row. */
async function prepareProduct(t: TestContext, input: string) {
  const folder = await mkdtemp(path.join(tmpdir(), "calibration-"));
  t.after(async () => rm(folder, { recursive: true }));
  const model = path.join(folder, "product.onnx");
  await writeTinyModel(model, {
    node: [node("MatMul", ["x", "w"], ["y"])],
    input: [tensorInfo("x", ["rows", 64])],
    output: [tensorInfo("y", ["rows", 32])],
    initializer: [floatInitializer("w", [64, 32], (index) => Math.sin(index * index))],
  });
  const values = Array.from({ length: 6 * 64 }, (_, index) => Math.cos(index));
  const data = await writeFloatsNpz(folder, input, { shape: [6, 1, 64], values });
  return { model: pathToFileURL(model).href, data: pathToFileURL(data).href };
}

const scheme = { scheme: "int4-weight" } as const;

test("the worker calibrates on the samples that the evaluation of the same file leaves", async (t) => {
  const { model, data } = await prepareProduct(t, "x");
  const evaluation = { data, samples: 2, latencyBudgetSeconds: 0, minCosine: 0 };
  const recipe = { ...scheme, calibration: { data }, evaluation };
  const { service, start } = await makeJob(t, model, { recipe });
  assert.equal(await exitCode(start()), workerExit.completed);
  const { telemetry } = summarizeEvents(service.events);
  const expected = { data: "caller", samples: 4, evaluationSamples: 2, fittedWeights: 1 };
  assert.deepEqual(telemetry.calibration, expected);
  assert.equal(telemetry.accuracy?.samples, 2);
});

test("the worker fails a job whose calibration data does not fit the model", async (t) => {
  const { model, data } = await prepareProduct(t, "z");
  const recipe = { ...scheme, calibration: { data } };
  const { service, start } = await makeJob(t, model, { recipe });
  assert.equal(await exitCode(start()), workerExit.failed);
  const result = service.events.at(-1);
  assert(result?.type === "result");
  assert.equal(result.error?.code, "calibration_data_invalid", result.error?.message);
});
