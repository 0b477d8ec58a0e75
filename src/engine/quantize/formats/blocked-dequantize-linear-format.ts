import { countBlocks } from "../kernels/block-format.ts";
import type { BlockFormat, MatrixShape } from "../kernels/block-format.ts";
import {
  addBlockTensors,
  blockFormat,
  blockPlanBytes,
  dequantizeLinearBlockPlan,
} from "./block-plan.ts";
import { intAttributes } from "./int-attributes.ts";
import { planMatrixShape } from "./plan-matrix-shape.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import { quantizedInputs } from "./quantized-tensors.ts";

/**
 * Values with a scale for each block of inputs, dequantized by the standard DequantizeLinear, which
 * runtimes fuse with the product.
 */
export function blockedDequantizeLinearFormat(bits: 4 | 8): QuantizationFormat {
  return (weight, recipe) => {
    const { blockSize } = recipe;
    const shape = planMatrixShape(weight);
    if (typeof shape === "string") return shape;
    const format = blockFormat(bits, recipe);
    if (shape.order === "nk" && !rowsFillBytes(shape, format)) {
      return `has rows of ${shape.k} values, whose codes or zero points do not fill whole bytes`;
    }
    const plan = dequantizeLinearBlockPlan(shape, format);
    const attributes = { axis: shape.order === "kn" ? 0 : 1, block_size: blockSize };
    return {
      description: `int${bits} with a scale for each ${blockSize} inputs of an output`,
      bytes: blockPlanBytes(weight, plan),
      opset: 21,
      apply: (rewrite) =>
        rewrite.prependNode(weight.scope.body, {
          opType: "DequantizeLinear",
          input: quantizedInputs(addBlockTensors(rewrite, weight, plan)),
          output: [weight.name],
          attribute: intAttributes(attributes),
        }),
    };
  };
}

function rowsFillBytes({ k }: MatrixShape, format: BlockFormat): boolean {
  if (format.bits === 8) return true;
  return k % 2 === 0 && (format.symmetric || countBlocks(k, format) % 2 === 0);
}
