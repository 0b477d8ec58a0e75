import type { Recipe } from "../../../contract/recipe.ts";
import { elementTypeName } from "../../onnx/element-type.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { tensorByteLength } from "../../onnx/read-tensor.ts";
import { exclusionFinder } from "../exclusion-finder.ts";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { countElements } from "../../onnx/count-elements.ts";
import { weightDims } from "../weight-dims.ts";
import type { SchemePlan, WeightPlan } from "../weight-plan.ts";
import { chooseFormat } from "./choose-format.ts";

/**
 * Decides what happens to each weight. `rejected` are the weights, by index, whose content turned
 * out to fit no format, with the reason.
 */
export function planWeights(
  weights: readonly Weight[],
  recipe: Recipe,
  rejected: ReadonlyMap<number, string>,
): SchemePlan {
  const findExclusion = exclusionFinder(recipe);
  const plans = weights.map((weight): WeightPlan => {
    const bytes = tensorByteLength(weight.tensor);
    const obstacle =
      rejected.get(weight.index) ??
      findQuantizationObstacle(weight, recipe) ??
      findExclusion(weight);
    if (obstacle !== undefined) return { weight, bytes, format: undefined, reason: obstacle };
    return { weight, bytes, ...chooseFormat(weight, recipe, bytes) };
  });
  const apply = (rewrite: GraphRewrite) => {
    for (const { format } of plans) format?.apply(rewrite);
  };
  return { weights: plans, apply };
}

/** Why a weight can have no format, whatever the scheme. */
function findQuantizationObstacle(weight: Weight, { minElements }: Recipe): string | undefined {
  const { tensor, uses, isOutput } = weight;
  const elements = countElements(weightDims(weight));
  if (elements === 0) return "has no elements";
  if (tensor.dataType !== DataType.FLOAT && tensor.dataType !== DataType.FLOAT16) {
    return `is ${elementTypeName(tensor.dataType)}, which has no form in fewer bits`;
  }
  if (uses.length === 0) return "is not used";
  if (isOutput) return "is an output of the model or of a subgraph";
  if (elements < minElements) return `has fewer elements than minElements ${minElements}`;
  return undefined;
}
