import type { Recipe } from "../../../contract/recipe.ts";
import { TensorProto_DataType as DataType, type NodeProto } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import type { Weight } from "../find-weights.ts";
import type { ValueUse } from "../graph-index.ts";
import { exclusionFinder } from "../exclusion-finder.ts";
import { sourceWeight } from "../source-weight.ts";
import { countElements } from "../../onnx/count-elements.ts";
import { weightDims } from "../weight-dims.ts";
import type { PlannedFormat, WeightPlan } from "../weight-plan.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { chooseHalfNodes, findHalfRangeLoss, type HalfChoice } from "./choose-half-nodes.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";
import { rewriteToHalf } from "./rewrite-to-half.ts";

interface HalfPrecisionPlan {
  readonly weights: readonly WeightPlan[];
  readonly choice: HalfChoice;
}

/** Plans a model in half precision: weights are stored so if any of their users work in it. */
export function planHalfPrecision(
  model: OnnxModel,
  weights: readonly Weight[],
  { recipe, rejected }: { recipe: Recipe; rejected: ReadonlyMap<number, string> },
): HalfPrecisionPlan {
  const findExclusion = exclusionFinder(recipe);
  const findObstacle = (weight: Weight) =>
    rejected.get(weight.index) ??
    (weight.isOverridable
      ? "is the default value of an input, which callers may set"
      : undefined) ??
    findExclusion(weight);
  const choice = chooseHalfNodes({ model, recipe, weights, findObstacle });
  const plans = weights.map((weight): WeightPlan => {
    const format = planHalfFormat(weight, choice);
    if (format !== undefined) return { weight, format, reason: undefined };
    return { weight, format, reason: explainUnconverted(model, weight, findObstacle(weight)) };
  });
  return { weights: plans, choice };
}

/** Converts weights and nodes of a model as planned. */
export function writeHalfPrecision(
  rewrite: GraphRewrite,
  { weights, choice }: HalfPrecisionPlan,
): void {
  const halfWeights = addHalfWeights(rewrite, weights, choice);
  const { graph } = rewrite.model.proto;
  if (graph !== undefined) rewriteToHalf({ rewrite, choice, halfWeights }, graph);
}

/** @returns undefined if no user of the weight works in half precision */
function planHalfFormat(weight: Weight, choice: HalfChoice): PlannedFormat | undefined {
  const { half, single } = countUsesByPrecision(weight, choice);
  if (half === 0) return undefined;
  const isKept = single > 0 || weight.isOutput;
  return {
    storage: { kind: "half", isKept },
    operations: [],
    restoration: null,
    description: isKept ? "float16 beside the original" : "float16",
    bytes: weight.bytes / 2 + (isKept ? weight.bytes : 0),
    opset: 0,
  };
}

function isHalfUse({ node, input }: ValueUse, choice: HalfChoice): boolean {
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
    const name = addHalfWeight(rewrite, weight);
    for (const use of weight.uses) {
      if (!isHalfUse(use, choice)) continue;
      names.set(use.node, (names.get(use.node) ?? new Map<number, string>()).set(use.input, name));
    }
    const { single } = countUsesByPrecision(weight, choice);
    if (single === 0 && !weight.isOutput) rewrite.removeWeight(weight);
  }
  return names;
}

/** @returns the name of the half-precision weight */
function addHalfWeight(rewrite: GraphRewrite, weight: Weight): string {
  const dims = weightDims(weight);
  const name = rewrite.names.allocate(`${weight.name}_half`);
  const bytes = countElements(dims) * 2;
  const tensor = { name, dims, dataType: DataType.FLOAT16, bytes };
  const values = rewrite.addComputedTensor(weight, tensor);
  rewrite.tasks.push({
    kind: "half",
    ...sourceWeight(rewrite.model, weight),
    resultBytes: bytes,
    outputs: { values },
  });
  return name;
}
