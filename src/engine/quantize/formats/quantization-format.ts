import type { Recipe } from "../../../contract/recipe.ts";
import type { Weight } from "../find-weights.ts";
import type { PlannedFormat } from "../weight-plan.ts";

/**
 * Plans a format of a weight, or says why the weight cannot have it; the sentence starts with the
 * weight's name, which is not part of the text.
 */
export type QuantizationFormat = (weight: Weight, recipe: Recipe) => PlannedFormat | string;
