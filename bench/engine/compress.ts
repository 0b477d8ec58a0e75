import { requestedRecipe, type Recipe } from "../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { createCandidateRunner } from "../../src/engine/candidate-runner.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { readPeakMemoryBytes } from "../../src/engine/runtime/read-peak-memory-bytes.ts";
import { planCompression } from "../../src/engine/plan-compression.ts";
import { target } from "./works.ts";

const [model = "", outputDirectory = "", request = "", scope = "all", calibrationPath] =
  process.argv.slice(2);
const recipe = resolveRecipe(requestedRecipe.parse(JSON.parse(request)));
const kind = "compress";
const quiet = { signal: new AbortController().signal, onProgress: () => {}, log: () => {} };
const exclude = scope === "matrices" ? await otherWeights(recipe) : [];
const start = performance.now();
const { weights } = await compressModel(model, {
  ...quiet,
  recipe: { ...recipe, exclude },
  kind,
  target,
  outputDirectory,
  calibrationPath,
  candidates: recipe.evaluation.level === "outputs" ? runCandidates(recipe) : undefined,
});
const seconds = (performance.now() - start) / 1000;
const peakBytes = await readPeakMemoryBytes();
process.stdout.write(`${JSON.stringify({ seconds, peakBytes, forms: countForms() })}\n`);

function countForms(): Record<string, number> {
  const forms: Record<string, number> = {};
  for (const { form } of weights)
    forms[form ?? "unchanged"] = (forms[form ?? "unchanged"] ?? 0) + 1;
  return forms;
}

/** As a worker's job runs them, on the samples that it calibrates on. */
function runCandidates({ evaluation }: Recipe) {
  const { executionProvider, instructionSets } = target;
  const where = { executionProvider, instructionSets, dataPath: calibrationPath };
  return createCandidateRunner({ ...quiet, ...where, originalPath: model, evaluation });
}

/** Weights that the peer's quantizer leaves alone, so that both change the same ones. */
async function otherWeights(ownRecipe: Recipe): Promise<string[]> {
  const plan = await planCompression(model, { recipe: ownRecipe, kind, target });
  const isMatrix = (opType: string): boolean => opType === "MatMul" || opType === "Gemm";
  return plan.weights
    .filter(({ weight }) => !weight.uses.some(({ node }) => isMatrix(node.opType)))
    .map(({ weight }) => weight.name);
}
