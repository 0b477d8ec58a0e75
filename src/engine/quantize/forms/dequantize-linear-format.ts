import { intAttribute } from "../../onnx/node-attributes.ts";
import { channelAxis, operatorName } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import {
  addAffineTensors,
  isHalfWeight,
  affinePlanBytes,
  affineFormat,
  weightDims,
} from "./affine-plan.ts";

/** int8 codes that a DequantizeLinear turns back into the weight when the model runs; any operator can take it. */
export const dequantizeLinearFormat: QuantizationFormat = (weight, recipe) => {
  const rank = weight.tensor.dims.length;
  const axes = new Set<number>();
  for (const use of weight.uses) {
    const axis = channelAxis(use, rank);
    if (axis === undefined)
      return `is input ${use.input} of ${operatorName(use.node)}, which has no form for it in fewer bits`;
    axes.add(axis);
  }
  const [axis] = recipe.granularity !== "tensor" && axes.size === 1 ? axes : [];
  const scaleDims = axis === undefined ? [] : [weightDims(weight)[axis] ?? 1];
  const format = { ...affineFormat(recipe), reduceRange: false };
  const plan = { axis, format, transposed: false, scaleDims };
  return {
    description:
      axis === undefined
        ? "int8 with one scale"
        : `int8 with a scale for each slice of axis ${axis}`,
    bytes: affinePlanBytes(weight, plan),
    opset: minimumDequantizeOpset(weight, axis),
    apply: (rewrite) => {
      const { quantizedValues, scales, zeroPoints } = addAffineTensors(rewrite, weight, plan);
      rewrite.prependNode(weight.scope.body, {
        opType: "DequantizeLinear",
        input:
          zeroPoints === undefined
            ? [quantizedValues, scales]
            : [quantizedValues, scales, zeroPoints],
        output: [weight.name],
        attribute: axis === undefined ? [] : [intAttribute("axis", axis)],
      });
    },
  };
};

/** First version of DequantizeLinear that does it. */
function minimumDequantizeOpset(weight: Weight, axis: number | undefined): number {
  if (isHalfWeight(weight)) return 19;
  return axis === undefined ? 10 : 13;
}
