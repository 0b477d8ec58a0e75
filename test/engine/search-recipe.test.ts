import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { findTarget, resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { realModel } from "../support/real-models.ts";
import { hashFile } from "../../scripts/repeat-job.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "search-"))));
after(() => rm(folder, { recursive: true }));

const target = findTarget(builtinTargets, "cpu");

async function compress(recipe: PartialRecipe, log: string[] = []) {
  const outputDirectory = await mkdtemp(join(folder, "result-"));
  const report = await compressModel(realModel("ocr-orientation"), {
    kind: "quantize",
    target,
    recipe: resolveRecipe({ evaluation: { samples: 4, latencyBudgetSeconds: 0 }, ...recipe }),
    outputDirectory,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    log: (line) => log.push(line),
  });
  const sha256 = await hashFile(join(outputDirectory, "model.onnx"));
  return { report, sha256 };
}

test("a goal of accuracy is reached, by a recipe that gives the same bytes again", async () => {
  const auto = { minSqnrDb: 40, samples: 4, points: 2 };
  const { report, sha256 } = await compress({ auto });
  const { search, foundRecipe } = report;
  assert(search?.reached);
  assert.deepEqual(search.missed, []);
  const chosen = search.points.find((point) => point.chosen);
  assert(chosen !== undefined && chosen.sqnrDb >= 40 && chosen.bytes === report.resultBytes);
  assert.equal(foundRecipe?.auto, undefined);
  const { auto: _, ...again } = foundRecipe ?? resolveRecipe();
  assert.equal((await compress(again)).sha256, sha256);
  const sizes = search.points.map(({ bytes }) => bytes);
  assert.deepEqual(
    sizes,
    sizes.toSorted((a, b) => a - b),
  );
});
