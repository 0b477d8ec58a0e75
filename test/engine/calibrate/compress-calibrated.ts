import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { evaluateModels } from "../../../src/engine/evaluate-models.ts";
import { contribTarget } from "../quantize/compress.ts";

/** Compresses a model to the folder `result`, with the data file of its calibration. */
export async function compress(
  model: string,
  folder: string,
  { recipe, data }: { recipe: PartialRecipe; data?: string },
) {
  const outputDirectory = join(folder, "result");
  await mkdir(outputDirectory, { recursive: true });
  return compressModel(model, {
    kind: "compress",
    recipe: resolveRecipe(recipe),
    target: contribTarget,
    calibrationPath: data,
    outputDirectory,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  });
}

/** SQNR of the worst output of what `compress` made, on samples of a file, dB. */
export async function measureSqnrDb(
  model: string,
  folder: string,
  dataPath: string,
): Promise<number> {
  let sqnrDb = NaN;
  await evaluateModels({
    originalPath: model,
    resultPath: join(folder, "result", "model.onnx"),
    evaluation: { samples: 8, latencyBudgetSeconds: 0, minCosine: -1 },
    executionProvider: "cpu",
    dataPath,
    scratchDirectory: folder,
    signal: new AbortController().signal,
    onProgress: () => {},
    onMeasured: ({ accuracy }) => (sqnrDb = accuracy?.sqnrDb ?? sqnrDb),
    log: () => {},
  });
  return sqnrDb;
}
