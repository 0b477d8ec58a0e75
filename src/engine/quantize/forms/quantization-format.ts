import type { Recipe } from "../../../contract/recipe.ts";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";

/** A form that a weight can take, planned down to its size. */
export interface PlannedFormat {
  /** For the report, for instance `int8, scale per channel of axis 0`. */
  readonly description: string;
  readonly bytes: number;
  /** First version of the standard operator set that has the operators of the form. */
  readonly opset: number;
  readonly apply: (rewrite: GraphRewrite) => void;
}

/** Plans a form of a weight, or says why the weight cannot take it; the sentence goes on from the weight's name. */
export type QuantizationFormat = (weight: Weight, recipe: Recipe) => PlannedFormat | string;
