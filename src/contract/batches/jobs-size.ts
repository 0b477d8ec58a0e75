import type { BatchRequest } from "./batch.ts";
import { limits } from "../limits.ts";

/**
 * Says what is too large where models × targets make large jobs of little: each job has its own
 * copy of its model and of its target's recipe. Undefined where the jobs are small enough.
 */
export function describeExcess(
  models: readonly object[],
  recipes: readonly object[],
): Excess | undefined {
  const ofModels = countBytes(models) * recipes.length;
  const ofRecipes = countBytes(recipes) * models.length;
  const bytes = ofModels + ofRecipes;
  if (bytes <= limits.requestedJobsBytes) return undefined;
  const message =
    `Makes jobs with ${bytes} bytes of models and recipes, ` +
    `of ${limits.requestedJobsBytes} at most`;
  return { largest: ofModels > ofRecipes ? "models" : "recipe", message };
}

/** The same for a Batch resource; none of its jobs is created or recorded then. */
export function describeBatchExcess({
  models,
  targets,
  recipe = {},
}: Pick<BatchRequest, "models" | "targets" | "recipe">): Excess | undefined {
  return describeExcess(
    models,
    targets.map(() => recipe),
  );
}

interface Excess {
  readonly largest: "models" | "recipe";
  readonly message: string;
}

function countBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}
