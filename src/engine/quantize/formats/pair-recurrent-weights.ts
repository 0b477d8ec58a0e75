import type { NodeProto } from "../../onnx/onnx_pb.js";
import type { Weight } from "../find-weights.ts";
import type { WeightPlan } from "../weight-plan.ts";

/** Plans weights once more that an LSTM would take quantized without its other weight being so. */
export function pairRecurrentWeights(
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
