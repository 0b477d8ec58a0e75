import { compressModel } from "../../src/engine/compress-model.ts";
import { requestedRecipe, resolveRecipe } from "../../src/contract/recipe.ts";
import { builtinTargets } from "../../src/contract/target.ts";

const [model = "", outputDirectory = "", recipe = ""] = process.argv.slice(2);
const [, target] = builtinTargets;
if (target === undefined) throw new Error("No built-in target");
const start = performance.now();
await compressModel(model, {
  recipe: resolveRecipe(requestedRecipe.parse(JSON.parse(recipe))),
  kind: "compress",
  target,
  outputDirectory,
  signal: new AbortController().signal,
  onProgress: () => {},
  log: () => {},
});
const seconds = (performance.now() - start) / 1000;
process.stdout.write(`${JSON.stringify({ seconds, peakBytes: process.resourceUsage().maxRSS * 1024 })}\n`);
