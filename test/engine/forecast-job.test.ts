import assert from "node:assert/strict";
import { test } from "node:test";
import { findTarget, resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { readPeakMemoryBytes } from "../../src/engine/runtime/read-peak-memory-bytes.ts";
import { forecastJob } from "../../src/engine/forecast-job.ts";
import { planCompression } from "../../src/engine/plan-compression.ts";
import { realModel } from "../support/real-models.ts";

test("a forecast adds nothing to memory that was freed before", async () => {
  const target = findTarget(builtinTargets, "cpu");
  const recipe = resolveRecipe(target.recipe, { evaluation: { level: "weights" } });
  const file = realModel("ocr-orientation");
  const plan = await planCompression(file, { kind: "compress", recipe, target });
  const freed = new ArrayBuffer(200_000_000);
  new Uint8Array(freed).fill(1);
  freed.transfer(0);
  const forecast = await forecastJob(plan, {
    recipe,
    executionProvider: "cpu",
    isCheckpoint: false,
    isRemote: false,
    isAssembled: false,
    folderBytes: 0,
  });
  assert.equal(forecast.peakMemoryBytes, await readPeakMemoryBytes());
});
