import { requestedRecipe, type Recipe } from "../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { readPeakMemoryBytes } from "../../src/engine/evaluate/read-peak-memory-bytes.ts";
import { planCompression } from "../../src/engine/plan-compression.ts";

const [model = "", outputDirectory = "", request = "", scope = "all", calibrationPath] =
  process.argv.slice(2);
const [, target] = builtinTargets;
if (target === undefined) throw new Error("No built-in target");
const recipe = resolveRecipe(requestedRecipe.parse(JSON.parse(request)));
const kind = "compress";
const exclude = scope === "matrices" ? await otherWeights(recipe) : [];
const start = performance.now();
await compressModel(model, {
  recipe: { ...recipe, exclude },
  kind,
  target,
  outputDirectory,
  calibrationPath,
  signal: new AbortController().signal,
  onProgress: () => {},
  log: () => {},
});
const seconds = (performance.now() - start) / 1000;
const peakBytes = await readPeakMemoryBytes();
process.stdout.write(`${JSON.stringify({ seconds, peakBytes })}\n`);

/** Weights that the peer's quantizer leaves alone, so that both change the same ones. */
async function otherWeights(ownRecipe: Recipe): Promise<string[]> {
  if (target === undefined) return [];
  const { weights } = await planCompression(model, { recipe: ownRecipe, kind, target });
  const isMatrix = (opType: string): boolean => opType === "MatMul" || opType === "Gemm";
  return weights
    .filter(({ weight }) => !weight.uses.some(({ node }) => isMatrix(node.opType)))
    .map(({ weight }) => weight.name);
}
