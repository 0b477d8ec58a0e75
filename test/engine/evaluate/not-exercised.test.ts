import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Telemetry } from "../../../src/contract/jobs/telemetry.ts";
import { evaluateModels } from "../../../src/engine/evaluate-models.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "not-exercised-"))));
after(() => rm(folder, { recursive: true }));

/** sigmoid(0.01 x + level), and x · 2 beside it where `more` is set. */
async function writeDetector(name: string, level: number, more: boolean): Promise<string> {
  const path = join(folder, name);
  const outputs = more ? ["found", "twice"] : ["found"];
  await writeTinyModel(path, {
    input: [tensorInfo("x", [1, 4])],
    output: outputs.map((output) => tensorInfo(output, [1, 4])),
    initializer: [
      floatInitializer("little", [1], () => 0.01),
      floatInitializer("level", [1], () => level),
      floatInitializer("two", [1], () => 2),
    ],
    node: [
      node("Mul", ["x", "little"], ["scaled"]),
      node("Add", ["scaled", "level"], ["logit"]),
      node("Sigmoid", ["logit"], ["found"]),
      ...(more ? [node("Mul", ["x", "two"], ["twice"])] : []),
    ],
  });
  return path;
}

async function evaluate(levels: readonly [number, number], more: boolean) {
  const measured: Partial<Telemetry> = {};
  const warnings: Telemetry["warnings"] = [];
  const [originalPath, resultPath] = await Promise.all([
    writeDetector("original.onnx", levels[0], more),
    writeDetector("result.onnx", levels[1], more),
  ]);
  await evaluateModels({
    originalPath,
    resultPath,
    evaluation: { samples: 4, latencyBudgetSeconds: 0, minCosine: 0.9 },
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory: folder,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onMeasured: ({ warnings: found = [], ...figures }) => {
      Object.assign(measured, figures);
      warnings.push(...found.filter(({ code }) => code !== "latency_not_timed"));
    },
    log: () => undefined,
  });
  return { ...measured, warnings };
}

test("an output that is saturated on all samples is no error of -18 dB, but not exercised", async () => {
  const { accuracy, generated, warnings } = await evaluate([-9, -7], false);
  assert.equal(accuracy, undefined);
  assert.deepEqual(warnings, [
    {
      code: "output_not_exercised",
      message:
        'Output "found" of the original hardly differs between the 4 generated samples, and was ' +
        "not compared; give evaluation data",
    },
  ]);
  assert.deepEqual(generated, [
    { name: "x", content: "standard normal values", shapes: ["1 × 4"] },
  ]);
});

test("other outputs are compared beside one that is not exercised", async () => {
  const { accuracy, warnings } = await evaluate([-9, -7], true);
  assert.deepEqual(accuracy?.notExercised, ["found"]);
  assert.deepEqual([accuracy.sqnrDb, accuracy.outputs.map(({ name }) => name)], [150, ["twice"]]);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["output_not_exercised"],
  );
});

test("a result that moves an output away from where it stays is wrong, however constant it is", async () => {
  const { accuracy, warnings } = await evaluate([-9, 3], false);
  assert.equal(accuracy?.notExercised, undefined);
  assert(accuracy && accuracy.sqnrDb < -60);
  assert.deepEqual(warnings, []);
});
