import type { RecipeForTarget } from "./list-candidates.ts";
import { planFoldedFormat, planWeight } from "./plan-weight.ts";
import { smoothPlan } from "./smoothed-input.ts";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { exclusionFinder, overrideFinder } from "../weight-patterns.ts";
import type { Weight } from "../find-weights.ts";
import { chooseHalfNodes, type HalfChoice, noHalfNodes } from "../half/choose-half-nodes.ts";
import { planRestoredHalf } from "../half/plan-half-format.ts";
import type { PlanRevision } from "../plan-revision.ts";
import { memoize } from "../memoize.ts";
import type { WeightPlan } from "../weight-plan.ts";

/** What happens to each weight, and which nodes compute in another precision because of it. */
export interface FormatPlan {
  readonly weights: readonly WeightPlan[];
  readonly half: HalfChoice;
  /** First version of the standard operator set that has all operators. */
  readonly opset: number;
}

interface ChoiceOptions extends RecipeForTarget {
  readonly model: OnnxModel;
  readonly weights: readonly Weight[];
}

/** Decides what happens to each weight, and to the nodes that take it. */
export function chooseFormats(
  options: ChoiceOptions,
  { rejected, folded, halved, inputScales }: PlanRevision,
): FormatPlan {
  const findExclusion = exclusionFinder(options.recipe);
  // Thousands of nodes may take one weight, each of which asks.
  const findObstacle = memoize(
    (weight: Weight) => rejected.get(weight.index) ?? findExclusion(weight),
  );
  const findOverride = memoize(overrideFinder(options.recipe));
  const findHalfObstacle = (weight: Weight) => findObstacle(weight) ?? findOverride(weight)?.reason;
  const half =
    options.recipe.scheme === "fp16"
      ? chooseHalfNodes({ ...options, findObstacle: findHalfObstacle })
      : noHalfNodes;
  const preferred = planWeights({ ...options, half, findObstacle, findOverride });
  // Plans of all revisions have one opset, so that they differ in nothing else.
  const opsets = [...preferred, ...preferred.map(foldPlan)].map(({ format }) => format?.opset ?? 0);
  const weights = preferred.map((plan) => {
    const { weight, format } = plan;
    const reason = folded.get(weight.index);
    if (reason !== undefined) return { ...foldPlan(plan), reason };
    const halfReason = halved.get(weight.index);
    if (halfReason !== undefined && format !== undefined) {
      return { weight, format: planRestoredHalf(weight, options.model), reason: halfReason };
    }
    const taken = options.recipe.dequantize === "load-only" ? restorePlan(plan) : plan;
    return smoothPlan(taken, inputScales, options.model.proto.graph);
  });
  const opset = opsets.reduce((highest, each) => Math.max(highest, each), 0);
  return { weights, half, opset };
}

interface PlanningOptions extends ChoiceOptions {
  readonly half: HalfChoice;
  /** Why a weight can have no format. */
  readonly findObstacle: (weight: Weight) => string | undefined;
  readonly findOverride: ReturnType<typeof overrideFinder>;
}

function planWeights({
  findObstacle,
  findOverride,
  ...options
}: PlanningOptions): readonly WeightPlan[] {
  const plan = (weight: Weight, takesRecurrent: boolean): WeightPlan => {
    const reason = findObstacle(weight);
    if (reason !== undefined) return { weight, format: undefined, reason };
    const override = findOverride(weight);
    if (override !== undefined && override.recipe === undefined)
      return { weight, format: undefined, reason: override.reason };
    const recipe = override?.recipe ?? options.recipe;
    const planned = planWeight(weight, { ...options, recipe, takesRecurrent });
    const reasons = [override?.reason, planned.reason].filter((each) => each !== undefined);
    return { weight, ...planned, reason: reasons.length === 0 ? undefined : reasons.join("; ") };
  };
  const planned = options.weights.map((weight) => plan(weight, true));
  return pairRecurrentWeights(planned, (weight) => plan(weight, false));
}

/** The plan of a recipe that has weights restored at load only. */
function restorePlan(plan: WeightPlan): WeightPlan {
  const isTaken = plan.format?.operations.some((operation) => operation !== "restore") ?? false;
  if (!isTaken) return plan;
  const { reason = "is restored at load only, as the recipe has it" } = plan;
  return { ...foldPlan(plan), reason };
}

/** The plan with the format that costs nothing when the model runs, where there is one. */
function foldPlan(plan: WeightPlan): WeightPlan {
  const { weight, format } = plan;
  return { ...plan, format: format && (planFoldedFormat(weight, format) ?? format) };
}

/** Plans weights once more that an LSTM would take quantized without its other weight being so. */
function pairRecurrentWeights(
  plans: readonly WeightPlan[],
  planAgain: (weight: Weight) => WeightPlan,
): readonly WeightPlan[] {
  const quantized = new Map<NodeProto, Set<number>>();
  for (const plan of plans) {
    for (const { node, input } of listRecurrentUses(plan)) {
      quantized.set(node, (quantized.get(node) ?? new Set<number>()).add(input));
    }
  }
  const isUnpaired = (plan: WeightPlan) =>
    listRecurrentUses(plan).some(({ node }) => quantized.get(node)?.size !== 2);
  if (!plans.some(isUnpaired)) return plans;
  // A weight that several LSTMs share takes its format from all of them.
  const paired = plans.map((plan) => (isUnpaired(plan) ? planAgain(plan.weight) : plan));
  return pairRecurrentWeights(paired, planAgain);
}

function listRecurrentUses({ weight, format }: WeightPlan): Weight["consumers"] {
  const operations = format?.operations ?? [];
  return weight.consumers.filter((_, index) => operations[index] === "recurrent-product");
}
