import type { Recipe } from "../../contract/jobs/recipe.ts";

/** What a recipe is in a few words: `int8-weight, per channel`, `int4-weight, blocks of 32`. */
export function describeRecipe({
  scheme,
  granularity,
  blockSize,
}: Pick<Recipe, "scheme" | "granularity" | "blockSize">): string {
  const detail = granularity === "block" ? `blocks of ${blockSize}` : `per ${granularity}`;
  return `${scheme}, ${detail}`;
}
