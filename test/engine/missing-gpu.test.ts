import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createCandidateRunner } from "../../src/engine/candidate-runner.ts";
import { evaluateModels } from "../../src/engine/evaluate-models.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { contribTarget, makeFolder } from "./quantize/compress.ts";

const skip = existsSync("/proc/driver/nvidia/gpus") && "this machine has a GPU";

test(
  "a target's GPU that is not there: nothing is timed, and the result is kept",
  { skip },
  async () => {
    await using folder = await makeFolder();
    const originalPath = join(folder.path, "original.onnx");
    await writeTinyModel(originalPath, {
      input: [tensorInfo("x", [1, 32])],
      output: [tensorInfo("y", [1, 32])],
      initializer: [floatInitializer("w", [32, 32], Math.sin)],
      node: [node("MatMul", ["x", "w"], ["y"])],
    });
    const lines: string[] = [];
    const options = {
      originalPath,
      evaluation: { samples: 1, latencyBudgetSeconds: 1, minCosine: 0.9 },
      executionProvider: "cuda",
      instructionSets: undefined,
      signal: new AbortController().signal,
      onProgress: () => {},
      log: (line: string) => lines.push(line),
    } as const;
    await compressModel(originalPath, {
      ...options,
      kind: "quantize",
      recipe: resolveRecipe({ scheme: "int8-dynamic" }),
      target: { ...contribTarget, executionProvider: "cuda" },
      outputDirectory: folder.path,
      candidates: createCandidateRunner(options),
    });
    const untimed = lines.filter((line) => line.startsWith("Candidates cannot be run: "));
    assert.match(untimed.join(), /cuda/i);
    const measured: Parameters<Parameters<typeof evaluateModels>[0]["onMeasured"]>[0][] = [];
    const evaluating = evaluateModels({
      ...options,
      resultPath: join(folder.path, "model.onnx"),
      scratchDirectory: folder.path,
      onMeasured: (figures) => measured.push(figures),
    });
    await assert.rejects(evaluating, { code: "evaluation_failed", message: /cuda/i });
    assert.deepEqual(
      measured.map(({ device, latency }) => [device?.executionProvider, device?.name, latency]),
      [["cuda", "unknown", undefined]],
    );
  },
);
