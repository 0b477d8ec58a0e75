import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { createCandidateRunner } from "../../../src/engine/candidate-runner.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { realModel, realModelMissing, type RealModelName } from "../../support/real-models.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../../support/tiny-model.ts";
import { measureSqnrDb } from "../quantize/candidates.ts";
import { contribTarget, makeFolder } from "../quantize/compress.ts";

const quiet = {
  signal: new AbortController().signal,
  onProgress: () => {},
  log: () => {},
};

const calibration = { generated: true, samples: 4, method: "minmax" } as const;

interface Case {
  readonly model: RealModelName;
  readonly recipe: PartialRecipe;
  /** Least that the SQNR is higher, dB. */
  readonly gain: number;
}

const cases: Readonly<Record<string, Case>> = {
  "of products in integers": {
    model: "ocr-recognition-v6",
    recipe: { scheme: "int8-static", dequantize: "run" },
    gain: 1,
  },
  "of weights that are restored": {
    model: "ocr-recognition",
    recipe: { scheme: "int8-weight", dequantize: "load-only" },
    gain: 3,
  },
  "of convolutions that have none": {
    model: "ocr-orientation",
    recipe: { scheme: "int8-weight", dequantize: "load-only" },
    gain: 1,
  },
};

for (const [which, { model: name, recipe, gain: least }] of Object.entries(cases)) {
  test(
    `Biases ${which} make up for what rounded weights change on average, where that is measured`,
    { skip: await realModelMissing(name) },
    async () => {
      await using folder = await makeFolder();
      const model = realModel(name);
      const runner = createCandidateRunner({
        ...quiet,
        originalPath: model,
        evaluation: { samples: 2, latencyBudgetSeconds: 0 },
        executionProvider: "cpu",
        instructionSets: undefined,
      });
      const compress = async (result: string, isMeasured: boolean) => {
        const outputDirectory = join(folder.path, result);
        await mkdir(outputDirectory);
        const report = await compressModel(model, {
          ...quiet,
          kind: "compress",
          recipe: resolveRecipe({ ...recipe, calibration }),
          target: contribTarget,
          outputDirectory,
          candidates: isMeasured ? runner : undefined,
        });
        const file = join(outputDirectory, "model.onnx");
        const sqnrDb = await runner.measureSqnrDb(file, { beforeSoftmax: true });
        const { correctsBiases: corrects, fittedWeights } = report.calibration ?? {};
        const isUnused = report.warnings.some(({ code }) => code === "calibration_unused");
        assert.equal(isUnused, fittedWeights === 0);
        return { sqnrDb: sqnrDb ?? NaN, corrects };
      };
      const before = await compress("rounded", false);
      const after = await compress("corrected", true);
      assert.deepEqual([before.corrects, after.corrects], [undefined, true]);
      const gain = after.sqnrDb - before.sqnrDb;
      assert.ok(gain >= least, `${gain} dB more than ${before.sqnrDb}`);
    },
  );
}

test("Biases beside weights whose codes for 0 are not 0 stay as they are", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "gemm.onnx");
  const normal = createNormal(createRandom(3));
  await writeTinyModel(model, {
    node: [node("Gemm", ["x", "matrix", "bias"], ["y"])],
    input: [tensorInfo("x", [4, 32])],
    output: [tensorInfo("y", [4, 16])],
    initializer: [
      floatInitializer("matrix", [32, 16], normal),
      floatInitializer("bias", [16], normal),
    ],
  });
  const recipe = { scheme: "int8-dynamic", dequantize: "load-only", calibration } as const;
  await compressModel(model, {
    ...quiet,
    kind: "compress",
    recipe: resolveRecipe(recipe),
    // Without dot products weights are uint8.
    target: { ...contribTarget, instructionSets: [] },
    outputDirectory: folder.path,
    correctsBiases: true,
  });
  const sqnrDb = await measureSqnrDb(model, join(folder.path, "model.onnx"));
  assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
});
