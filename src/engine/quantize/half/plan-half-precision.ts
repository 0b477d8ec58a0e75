import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { tensorByteLength, tensorSource } from "../../onnx/read-tensor.ts";
import type { Weight } from "../find-weights.ts";
import { countElements, weightDims } from "../forms/affine-plan.ts";
import { exclusionFinder } from "../plan-weights.ts";
import type { SchemePlan, WeightPlan } from "../plan-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { chooseHalfNodes, findHalfRangeLoss } from "./choose-half-nodes.ts";
import type { HalfChoice } from "./choose-half-nodes.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";
import { rewriteToHalf } from "./rewrite-to-half.ts";

/** Plans a model in half precision: which weights are stored so, because all or some of their users work in it. */
export function planHalfPrecision(
  model: OnnxModel,
  weights: readonly Weight[],
  { recipe, rejected }: { recipe: Recipe; rejected: ReadonlyMap<number, string> },
): SchemePlan {
  const findExclusion = exclusionFinder(recipe);
  const findObstacle = (weight: Weight) => rejected.get(weight.index) ?? findExclusion(weight);
  const choice = chooseHalfNodes({ model, recipe, weights, findObstacle });
  const plans = weights.map((weight): WeightPlan => {
    const bytes = tensorByteLength(weight.tensor);
    const { half, single } = countUsesByPrecision(weight, choice);
    if (half === 0)
      return {
        weight,
        bytes,
        format: undefined,
        reason: explainUnconverted(model, weight, findObstacle(weight)),
      };
    const isKept = single > 0 || weight.isOutput;
    const resultBytes = bytes / 2 + (isKept ? bytes : 0);
    const format = {
      description: isKept ? "float16 beside the original" : "float16",
      bytes: resultBytes,
      opset: 0,
    };
    return { weight, bytes, format: { ...format, apply: () => {} }, reason: undefined };
  });
  const apply = (rewrite: GraphRewrite) => {
    const halfWeights = addHalfWeights(rewrite, plans, choice);
    if (model.proto.graph !== undefined)
      rewriteToHalf({ rewrite, choice, halfWeights }, model.proto.graph);
  };
  return { weights: plans, apply };
}

function isHalfUse({ node, input }: Weight["uses"][number], choice: HalfChoice): boolean {
  const positions = halfPositions(halfOperators.get(node.opType)?.inputs ?? [], node.input);
  return choice.nodes.has(node) && positions.includes(input);
}

function countUsesByPrecision(
  weight: Weight,
  choice: HalfChoice,
): { half: number; single: number } {
  const half = weight.uses.filter((use) => isHalfUse(use, choice)).length;
  return { half, single: weight.uses.length - half };
}

function explainUnconverted(
  model: OnnxModel,
  weight: Weight,
  obstacle: string | undefined,
): string {
  if (obstacle !== undefined) return obstacle;
  if (weight.uses.length === 0) return "is not used";
  if (weight.tensor.dataType === DataType.FLOAT16) return "is in half precision already";
  const problem = findHalfRangeLoss(weight, { model });
  if (problem === "overflow") return "has values beyond the range of half precision";
  if (problem === "underflow") return "has values that half precision would make zero";
  return `is used by ${weight.uses[0]?.node.opType}, which works in single precision`;
}

function addHalfWeights(
  rewrite: GraphRewrite,
  plans: readonly WeightPlan[],
  choice: HalfChoice,
): Map<NodeProto, Map<number, string>> {
  const names = new Map<NodeProto, Map<number, string>>();
  for (const { weight, format } of plans) {
    if (format === undefined) continue;
    const dims = weightDims(weight);
    const name = rewrite.names.allocate(`${weight.name}_half`);
    const bytes = countElements(dims) * 2;
    const payload = rewrite.addComputedTensor(weight, {
      name,
      dims,
      dataType: DataType.FLOAT16,
      bytes,
    });
    rewrite.tasks.push({
      kind: "half",
      weight: weight.index,
      source: tensorSource(rewrite.model, weight.tensor),
      sourceType: "float32",
      elements: countElements(dims),
      sourceBytes: bytes * 2,
      resultBytes: bytes,
      outputs: { values: payload },
    });
    for (const use of weight.uses) {
      if (!isHalfUse(use, choice)) continue;
      names.set(use.node, (names.get(use.node) ?? new Map<number, string>()).set(use.input, name));
    }
    if (countUsesByPrecision(weight, choice).single === 0 && !weight.isOutput)
      rewrite.removeWeight(weight);
  }
  return names;
}
