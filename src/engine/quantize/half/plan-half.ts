import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/payload.ts";
import { tensorBytes, tensorSource } from "../../onnx/read-tensor.ts";
import type { Weight } from "../find-weights.ts";
import { product, weightDims } from "../forms/linear-form.ts";
import { exclusionsOf } from "../plan-weights.ts";
import type { SchemePlan, WeightPlan } from "../plan-weights.ts";
import type { Rewrite } from "../rewrite.ts";
import { chooseHalf, unrepresentable } from "./choose-half.ts";
import type { HalfChoice } from "./choose-half.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";
import { rewriteHalf } from "./rewrite-half.ts";

/** Plans a model in half precision: which weights are stored so, because all or some of their users work in it. */
export function planHalf(
  model: OnnxModel,
  weights: readonly Weight[],
  { recipe, rejected }: { recipe: Recipe; rejected: ReadonlyMap<number, string> },
): SchemePlan {
  const excluded = exclusionsOf(recipe);
  const obstacleOf = (weight: Weight) => rejected.get(weight.index) ?? excluded(weight);
  const choice = chooseHalf({ model, recipe, weights, obstacleOf });
  const plans = weights.map((weight): WeightPlan => {
    const bytes = tensorBytes(weight.tensor);
    const { half, single } = countUses(weight, choice);
    if (half === 0) return { weight, bytes, form: undefined, reason: reasonOf(model, weight, obstacleOf(weight)) };
    const isKept = single > 0 || weight.isOutput;
    const resultBytes = bytes / 2 + (isKept ? bytes : 0);
    const form = { description: isKept ? "float16 beside the original" : "float16", bytes: resultBytes, opset: 0 };
    return { weight, bytes, form: { ...form, apply: () => {} }, reason: undefined };
  });
  const apply = (rewrite: Rewrite) => {
    const halfWeights = addHalfWeights(rewrite, plans, choice);
    if (model.proto.graph !== undefined) rewriteHalf({ rewrite, choice, halfWeights }, model.proto.graph);
  };
  return { weights: plans, apply };
}

function isHalfUse({ node, input }: Weight["uses"][number], choice: HalfChoice): boolean {
  const positions = halfPositions(halfOperators.get(node.opType)?.inputs ?? [], node.input);
  return choice.nodes.has(node) && positions.includes(input);
}

function countUses(weight: Weight, choice: HalfChoice): { half: number; single: number } {
  const half = weight.uses.filter((use) => isHalfUse(use, choice)).length;
  return { half, single: weight.uses.length - half };
}

function reasonOf(model: OnnxModel, weight: Weight, obstacle: string | undefined): string {
  if (obstacle !== undefined) return obstacle;
  if (weight.uses.length === 0) return "is not used";
  if (weight.tensor.dataType === DataType.FLOAT16) return "is in half precision already";
  const problem = unrepresentable(weight, { model });
  if (problem === "overflow") return "has values beyond the range of half precision";
  if (problem === "underflow") return "has values that half precision would make zero";
  return `is used by ${weight.uses[0]?.node.opType}, which works in single precision`;
}

function addHalfWeights(
  rewrite: Rewrite,
  plans: readonly WeightPlan[],
  choice: HalfChoice,
): Map<NodeProto, Map<number, string>> {
  const names = new Map<NodeProto, Map<number, string>>();
  for (const { weight, form } of plans) {
    if (form === undefined) continue;
    const dims = weightDims(weight);
    const name = rewrite.names.take(`${weight.name}_half`);
    const bytes = product(dims) * 2;
    const codes = rewrite.addComputed(weight, { name, dims, dataType: DataType.FLOAT16, bytes });
    rewrite.tasks.push({
      kind: "half",
      weight: weight.index,
      source: tensorSource(rewrite.model, weight.tensor),
      sourceType: "float32",
      elements: product(dims),
      sourceBytes: bytes * 2,
      resultBytes: bytes,
      outputs: { codes },
    });
    for (const use of weight.uses) {
      if (!isHalfUse(use, choice)) continue;
      names.set(use.node, (names.get(use.node) ?? new Map<number, string>()).set(use.input, name));
    }
    if (countUses(weight, choice).single === 0 && !weight.isOutput) rewrite.drop(weight);
  }
  return names;
}
