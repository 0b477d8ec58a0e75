import { intAttribute } from "../../onnx/node-attributes.ts";
import { channelAxis, operatorOf } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import type { Form } from "./form.ts";
import { addLinearCodes, isHalf, linearBytes, linearFormat, weightDims } from "./linear-form.ts";

/** int8 codes that a DequantizeLinear turns back into the weight when the model runs; any operator can take it. */
export const dequantizedWeight: Form = (weight, recipe) => {
  const rank = weight.tensor.dims.length;
  const axes = new Set<number>();
  for (const use of weight.uses) {
    const axis = channelAxis(use, rank);
    if (axis === undefined)
      return `is input ${use.input} of ${operatorOf(use.node)}, which has no form for it in fewer bits`;
    axes.add(axis);
  }
  const [axis] = recipe.granularity !== "tensor" && axes.size === 1 ? axes : [];
  const scaleDims = axis === undefined ? [] : [weightDims(weight)[axis] ?? 1];
  const format = { ...linearFormat(recipe), reduceRange: false };
  const plan = { axis, format, transposed: false, scaleDims };
  return {
    description: axis === undefined ? "int8 with one scale" : `int8 with a scale for each slice of axis ${axis}`,
    bytes: linearBytes(weight, plan),
    opset: opsetOf(weight, axis),
    apply: (rewrite) => {
      const { codes, scales, zeroPoints } = addLinearCodes(rewrite, weight, plan);
      rewrite.addFirst(weight.scope.body, {
        opType: "DequantizeLinear",
        input: zeroPoints === undefined ? [codes, scales] : [codes, scales, zeroPoints],
        output: [weight.name],
        attribute: axis === undefined ? [] : [intAttribute("axis", axis)],
      });
    },
  };
};

/** First version of DequantizeLinear that does it. */
function opsetOf(weight: Weight, axis: number | undefined): number {
  if (isHalf(weight)) return 19;
  return axis === undefined ? 10 : 13;
}
