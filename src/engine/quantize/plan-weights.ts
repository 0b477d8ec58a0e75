import type { Recipe } from "../../contract/recipe.ts";
import { elementTypeName } from "../onnx/element-type.ts";
import { quoted } from "../onnx/external-data.ts";
import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import { tensorBytes } from "../onnx/read-tensor.ts";
import type { Weight } from "./find-weights.ts";
import { blockedDequantize, nbitsProduct } from "./forms/block-products.ts";
import { dequantizedWeight } from "./forms/dequantized-weight.ts";
import { dynamicMatmul } from "./forms/dynamic-matmul.ts";
import type { Form, PlannedForm } from "./forms/form.ts";
import type { Rewrite } from "./rewrite.ts";
import { gatheredBlocks } from "./forms/gathered-blocks.ts";
import { gatheredRows } from "./forms/gathered-rows.ts";
import { product, weightDims } from "./forms/linear-form.ts";

/** What happens to one weight: it takes a form, or is left alone for a reason. */
export interface WeightPlan {
  readonly weight: Weight;
  readonly bytes: number;
  readonly form: PlannedForm | undefined;
  /** Why the weight is left alone, or did not get the recipe's own scheme; goes on from the weight's name. */
  readonly reason: string | undefined;
}

/** What a scheme makes of a model. */
export interface SchemePlan {
  readonly weights: readonly WeightPlan[];
  readonly apply: (rewrite: Rewrite) => void;
}

/** Forms of a scheme, the best first. The last one's reason is the one to tell. */
function formsOf(scheme: Exclude<Recipe["scheme"], "fp16">, { operators, granularity }: Recipe): readonly Form[] {
  const blocks = (bits: 4 | 8) =>
    operators === "contrib" ? [nbitsProduct(bits), gatheredBlocks(bits)] : [blockedDequantize(bits)];
  switch (scheme) {
    case "int8-dynamic":
      return [dynamicMatmul];
    case "int4-weight":
      return blocks(4);
    case "int8-weight":
      return [...(granularity === "block" ? blocks(8) : []), gatheredRows, dequantizedWeight];
  }
}

/** Decides what happens to each weight. `rejected` are the weights, by index, whose content turned out to fit no form, with the reason. */
export function planWeights(
  weights: readonly Weight[],
  recipe: Recipe,
  rejected: ReadonlyMap<number, string>,
): SchemePlan {
  const excluded = exclusionsOf(recipe);
  const plans = weights.map((weight): WeightPlan => {
    const bytes = tensorBytes(weight.tensor);
    const obstacle = rejected.get(weight.index) ?? obstacleOf(weight, recipe) ?? excluded(weight);
    if (obstacle !== undefined) return { weight, bytes, form: undefined, reason: obstacle };
    return { weight, bytes, ...chooseForm(weight, recipe, bytes) };
  });
  const apply = (rewrite: Rewrite) => {
    for (const { form } of plans) form?.apply(rewrite);
  };
  return { weights: plans, apply };
}

function chooseForm(weight: Weight, recipe: Recipe, bytes: number): Pick<WeightPlan, "form" | "reason"> {
  const own = firstForm(weight, { recipe, scheme: recipe.scheme, bytes });
  if (typeof own !== "string") return { form: own, reason: undefined };
  if (recipe.fallback === "none") return { form: undefined, reason: own };
  const other = firstForm(weight, { recipe, scheme: recipe.fallback, bytes });
  if (typeof other === "string") return { form: undefined, reason: own === other ? own : `${own}; ${other}` };
  return { form: other, reason: own };
}

interface FormSearch {
  readonly recipe: Recipe;
  readonly scheme: Recipe["scheme"];
  readonly bytes: number;
}

function firstForm(weight: Weight, { recipe, scheme, bytes }: FormSearch): PlannedForm | string {
  let reason = `has no form in ${scheme}`;
  for (const form of scheme === "fp16" ? [] : formsOf(scheme, recipe)) {
    const planned = form(weight, recipe);
    if (typeof planned !== "string" && planned.bytes < bytes) return planned;
    reason = typeof planned === "string" ? planned : `would have ${planned.bytes} bytes as ${planned.description}`;
  }
  return reason;
}

/** Why no form can hold a weight, whatever the scheme. */
function obstacleOf(weight: Weight, recipe: Recipe): string | undefined {
  const { tensor, uses, isOutput } = weight;
  const dims = weightDims(weight);
  const elements = product(dims);
  if (elements === 0) return "has no elements";
  if (tensor.dataType !== DataType.FLOAT && tensor.dataType !== DataType.FLOAT16) {
    return `is ${elementTypeName(tensor.dataType)}, which has no form in fewer bits`;
  }
  if (uses.length === 0) return "is not used";
  if (isOutput) return "is an output of the model or of a subgraph";
  if (elements < recipe.minElements) return `has fewer elements than minElements ${recipe.minElements}`;
  return undefined;
}

/** @returns a function that says by which pattern of the recipe a weight is excluded */
export function exclusionsOf({ exclude }: Recipe): (weight: Weight) => string | undefined {
  return ({ name, uses }) => {
    for (const candidate of [name, ...uses.map(({ node }) => node.name)]) {
      const pattern = exclude.find((each) => matchesPattern(candidate, each));
      if (pattern !== undefined) return `is excluded: ${quoted(candidate)} matches ${quoted(pattern)}`;
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
