import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { createCandidateRunner } from "../../../src/engine/candidate-runner.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import { contribTarget, makeFolder } from "../quantize/compress.ts";

const quiet = {
  signal: new AbortController().signal,
  onProgress: () => {},
  log: () => {},
};

test(
  "Biases make up for what rounded weights change on average, where that is measured",
  { skip: await realModelMissing("ocr-recognition-v6") },
  async () => {
    await using folder = await makeFolder();
    const model = realModel("ocr-recognition-v6");
    const runner = createCandidateRunner({
      ...quiet,
      originalPath: model,
      evaluation: { samples: 2, latencyBudgetSeconds: 0 },
      executionProvider: "cpu",
      instructionSets: undefined,
    });
    const compress = async (name: string, isMeasured: boolean) => {
      const outputDirectory = join(folder.path, name);
      await mkdir(outputDirectory);
      const report = await compressModel(model, {
        ...quiet,
        kind: "compress",
        recipe: resolveRecipe({
          scheme: "int8-static",
          dequantize: "run",
          calibration: { generated: true, samples: 4, method: "minmax" },
        }),
        target: contribTarget,
        outputDirectory,
        candidates: isMeasured ? runner : undefined,
      });
      const file = join(outputDirectory, "model.onnx");
      const sqnrDb = await runner.measureSqnrDb(file, { beforeSoftmax: true });
      return { sqnrDb: sqnrDb ?? NaN, corrects: report.calibration?.correctsBiases };
    };
    const [before, after] = [await compress("rounded", false), await compress("corrected", true)];
    assert.deepEqual([before.corrects, after.corrects], [undefined, true]);
    const gain = after.sqnrDb - before.sqnrDb;
    assert.ok(gain >= 1, `${gain} dB more than ${before.sqnrDb}`);
  },
);
