import type { Recipe } from "../../../contract/recipe.ts";
import { elementTypeName } from "../../onnx/element-type.ts";
import { exclusionFinder } from "../exclusion-finder.ts";
import type { Weight } from "../find-weights.ts";
import { countElements } from "../../onnx/count-elements.ts";
import { findFloatType } from "../source-weight.ts";
import { weightDims } from "../weight-dims.ts";
import type { QuantizedWeightPlan } from "../weight-plan.ts";
import { planWeight } from "./plan-weight.ts";

/**
 * Decides what happens to each weight. `rejected` are the weights, by index, whose content turned
 * out to fit no format, with the reason.
 */
export function planWeights(
  weights: readonly Weight[],
  recipe: Recipe,
  rejected: ReadonlyMap<number, string>,
): QuantizedWeightPlan[] {
  const findExclusion = exclusionFinder(recipe);
  return weights.map((weight) => {
    const obstacle =
      rejected.get(weight.index) ??
      findQuantizationObstacle(weight, recipe) ??
      findExclusion(weight);
    if (obstacle !== undefined) return { weight, format: undefined, reason: obstacle };
    return { weight, ...planWeight(weight, recipe) };
  });
}

/** Why a weight can have no format, whatever the scheme. */
function findQuantizationObstacle(weight: Weight, { minElements }: Recipe): string | undefined {
  const { tensor, consumers } = weight;
  const elements = countElements(weightDims(weight));
  if (elements === 0) return "has no elements";
  if (findFloatType(weight) === undefined) {
    return `is ${elementTypeName(tensor.dataType)}, which has no form in fewer bits`;
  }
  if (consumers.length === 0) return "is not used";
  if (weight.isSparse) return "is sparse, which has no form in fewer bits";
  if (weight.isOutput) return "is an output of the model or of a subgraph";
  if (elements < minElements) return `has fewer elements than minElements ${minElements}`;
  return undefined;
}
