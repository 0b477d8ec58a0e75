import { channelAxis, operatorName } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import { isHalfWeight } from "../source-weight.ts";
import { weightDims } from "../weight-dims.ts";
import { addAffineTensors, affineFormat, affinePlanBytes } from "./affine-plan.ts";
import { intAttributes } from "./int-attributes.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import { quantizedInputs } from "./quantized-tensors.ts";

/** int8 values that a DequantizeLinear dequantizes when the model runs, for any operator. */
export const dequantizeLinearFormat: QuantizationFormat = (weight, recipe) => {
  const axes = findChannelAxes(weight);
  if (typeof axes === "string") return axes;
  const [axis] = recipe.granularity !== "tensor" && axes.size === 1 ? axes : [];
  const scaleDims = axis === undefined ? [] : [weightDims(weight)[axis] ?? 1];
  const format = { ...affineFormat(recipe), reduceRange: false };
  const plan = { axis, format, transposed: false, scaleDims };
  const granularity = axis === undefined ? "one scale" : `a scale for each slice of axis ${axis}`;
  return {
    description: `int8 with ${granularity}`,
    bytes: affinePlanBytes(weight, plan),
    opset: minimumDequantizeOpset(weight, axis),
    apply: (rewrite) =>
      rewrite.prependNode(weight.scope.body, {
        opType: "DequantizeLinear",
        input: quantizedInputs(addAffineTensors(rewrite, weight, plan)),
        output: [weight.name],
        attribute: axis === undefined ? [] : intAttributes({ axis }),
      }),
  };
};

/** The axes along which users take a weight's channels, or why one of them needs it in full. */
function findChannelAxes({ uses, tensor }: Weight): Set<number> | string {
  const axes = new Set<number>();
  for (const use of uses) {
    const axis = channelAxis(use, tensor.dims.length);
    if (axis === undefined) {
      const operator = operatorName(use.node);
      return `is input ${use.input} of ${operator}, which has no form for it in fewer bits`;
    }
    axes.add(axis);
  }
  return axes;
}

/** First version of DequantizeLinear that has what is needed. */
function minimumDequantizeOpset(weight: Weight, axis: number | undefined): number {
  if (isHalfWeight(weight)) return 19;
  return axis === undefined ? 10 : 13;
}
