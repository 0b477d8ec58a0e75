import type { Recipe } from "../../contract/recipe.ts";
import { elementTypeName } from "../onnx/element-type.ts";
import { quoteName } from "../onnx/quote-name.ts";
import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import { tensorByteLength } from "../onnx/read-tensor.ts";
import type { Weight } from "./find-weights.ts";
import { blockedDequantizeLinearFormat, matMulNBitsFormat } from "./forms/block-matmul-formats.ts";
import { dequantizeLinearFormat } from "./forms/dequantize-linear-format.ts";
import { dynamicMatMulFormat } from "./forms/dynamic-matmul-format.ts";
import type { QuantizationFormat, PlannedFormat } from "./forms/quantization-format.ts";
import type { GraphRewrite } from "./graph-rewrite.ts";
import { gatherBlockQuantizedFormat } from "./forms/gather-block-quantized-format.ts";
import { gatherRowsFormat } from "./forms/gather-rows-format.ts";
import { countElements, weightDims } from "./forms/affine-plan.ts";

/** What happens to one weight: it takes a form, or is left alone for a reason. */
export interface WeightPlan {
  readonly weight: Weight;
  readonly bytes: number;
  readonly format: PlannedFormat | undefined;
  /** Why the weight is left alone, or did not get the recipe's own scheme; goes on from the weight's name. */
  readonly reason: string | undefined;
}

/** What a scheme makes of a model. */
export interface SchemePlan {
  readonly weights: readonly WeightPlan[];
  readonly apply: (rewrite: GraphRewrite) => void;
}

/** Forms of a scheme, the best first. The last one's reason is the one to tell. */
function candidateFormats(
  scheme: Exclude<Recipe["scheme"], "fp16">,
  { operators, granularity }: Recipe,
): readonly QuantizationFormat[] {
  const blocks = (bits: 4 | 8) =>
    operators === "contrib"
      ? [matMulNBitsFormat(bits), gatherBlockQuantizedFormat(bits)]
      : [blockedDequantizeLinearFormat(bits)];
  switch (scheme) {
    case "int8-dynamic":
      return [dynamicMatMulFormat];
    case "int4-weight":
      return blocks(4);
    case "int8-weight":
      return [
        ...(granularity === "block" ? blocks(8) : []),
        gatherRowsFormat,
        dequantizeLinearFormat,
      ];
  }
}

/** Decides what happens to each weight. `rejected` are the weights, by index, whose content turned out to fit no form, with the reason. */
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

function chooseFormat(
  weight: Weight,
  recipe: Recipe,
  bytes: number,
): Pick<WeightPlan, "format" | "reason"> {
  const own = planFirstFormat(weight, { recipe, scheme: recipe.scheme, bytes });
  if (typeof own !== "string") return { format: own, reason: undefined };
  if (recipe.fallback === "none") return { format: undefined, reason: own };
  const other = planFirstFormat(weight, { recipe, scheme: recipe.fallback, bytes });
  if (typeof other === "string")
    return { format: undefined, reason: own === other ? own : `${own}; ${other}` };
  return { format: other, reason: own };
}

interface FormatSearch {
  readonly recipe: Recipe;
  readonly scheme: Recipe["scheme"];
  readonly bytes: number;
}

function planFirstFormat(
  weight: Weight,
  { recipe, scheme, bytes }: FormatSearch,
): PlannedFormat | string {
  let reason = `has no form in ${scheme}`;
  for (const format of scheme === "fp16" ? [] : candidateFormats(scheme, recipe)) {
    const planned = format(weight, recipe);
    if (typeof planned !== "string" && planned.bytes < bytes) return planned;
    reason =
      typeof planned === "string"
        ? planned
        : `would have ${planned.bytes} bytes as ${planned.description}`;
  }
  return reason;
}

/** Why no form can hold a weight, whatever the scheme. */
function findQuantizationObstacle(weight: Weight, recipe: Recipe): string | undefined {
  const { tensor, uses, isOutput } = weight;
  const dims = weightDims(weight);
  const elements = countElements(dims);
  if (elements === 0) return "has no elements";
  if (tensor.dataType !== DataType.FLOAT && tensor.dataType !== DataType.FLOAT16) {
    return `is ${elementTypeName(tensor.dataType)}, which has no form in fewer bits`;
  }
  if (uses.length === 0) return "is not used";
  if (isOutput) return "is an output of the model or of a subgraph";
  if (elements < recipe.minElements)
    return `has fewer elements than minElements ${recipe.minElements}`;
  return undefined;
}

/** @returns a function that says by which pattern of the recipe a weight is excluded */
export function exclusionFinder({ exclude }: Recipe): (weight: Weight) => string | undefined {
  return ({ name, uses }) => {
    for (const candidate of [name, ...uses.map(({ node }) => node.name)]) {
      const pattern = exclude.find((each) => matchesPattern(candidate, each));
      if (pattern !== undefined)
        return `is excluded: ${quoteName(candidate)} matches ${quoteName(pattern)}`;
    }
    return undefined;
  };
}

/** Whether a name matches a pattern in which `*` stands for any characters; in time proportional to their lengths' product at most. */
export function matchesPattern(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let position = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
  }
  return name.length - last.length >= position && name.endsWith(last);
}
