import { intAttribute } from "../../onnx/node-attributes.ts";
import type { Weight } from "../find-weights.ts";
import { countBlocks } from "../kernels/block-format.ts";
import type { BlockFormat, MatrixShape } from "../kernels/block-format.ts";
import type { NodeDescription } from "../graph-rewrite.ts";
import {
  addBlockTensors,
  blockPlanBytes,
  blockFormat,
  dequantizeLinearBlockPlan,
  packedBlockPlan,
} from "./block-plan.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import {
  isWeightTransposed,
  findProductObstacle,
  replaceMatrixProduct,
} from "./replace-matrix-product.ts";
import { weightDims } from "./affine-plan.ts";

/** Codes with a scale for each block of inputs, multiplied by ONNX Runtime's MatMulNBits. */
export function matMulNBitsFormat(bits: 4 | 8): QuantizationFormat {
  return (weight, recipe) => {
    const shape = planMatrixShape(weight);
    if (typeof shape === "string") return shape;
    const plan = packedBlockPlan("matmul", shape, blockFormat(bits, recipe));
    const { k, n } = shape;
    return {
      description: `int${bits} with a scale for each ${recipe.blockSize} inputs of an output, for MatMulNBits`,
      bytes: blockPlanBytes(weight, plan),
      opset: 0,
      apply: (rewrite) => {
        rewrite.requireContribOperators();
        const { quantizedValues, scales, zeroPoints } = addBlockTensors(rewrite, weight, plan);
        const attributes = { K: k, N: n, bits, block_size: recipe.blockSize };
        const attribute = Object.entries(attributes).map(([name, value]) =>
          intAttribute(name, value),
        );
        for (const use of weight.uses) {
          const multiply = (left: string, steps: NodeDescription[]) => {
            const product = rewrite.names.allocate(`${use.node.output[0]}_product`);
            const input =
              zeroPoints === undefined
                ? [left, quantizedValues, scales]
                : [left, quantizedValues, scales, zeroPoints];
            steps.push({
              opType: "MatMulNBits",
              domain: "com.microsoft",
              input,
              output: [product],
              attribute,
            });
            return product;
          };
          replaceMatrixProduct(rewrite, { use, elementType: weight.tensor.dataType, multiply });
        }
      },
    };
  };
}

/** Codes with a scale for each block of inputs, turned back by the standard DequantizeLinear; runtimes fuse it with the product. */
export function blockedDequantizeLinearFormat(bits: 4 | 8): QuantizationFormat {
  return (weight, recipe) => {
    const shape = planMatrixShape(weight);
    if (typeof shape === "string") return shape;
    const format = blockFormat(bits, recipe);
    if (shape.order === "nk" && !rowsFillBytes(shape, format)) {
      return `has rows of ${shape.k} values, whose codes or zero points do not fill whole bytes`;
    }
    const plan = dequantizeLinearBlockPlan(shape, format);
    return {
      description: `int${bits} with a scale for each ${recipe.blockSize} inputs of an output`,
      bytes: blockPlanBytes(weight, plan),
      opset: 21,
      apply: (rewrite) => {
        const { quantizedValues, scales, zeroPoints } = addBlockTensors(rewrite, weight, plan);
        rewrite.prependNode(weight.scope.body, {
          opType: "DequantizeLinear",
          input:
            zeroPoints === undefined
              ? [quantizedValues, scales]
              : [quantizedValues, scales, zeroPoints],
          output: [weight.name],
          attribute: [
            intAttribute("axis", shape.order === "kn" ? 0 : 1),
            intAttribute("block_size", recipe.blockSize),
          ],
        });
      },
    };
  };
}

function rowsFillBytes({ k }: MatrixShape, format: BlockFormat): boolean {
  return (
    format.bits === 8 || (k % 2 === 0 && (format.symmetric || countBlocks(k, format) % 2 === 0))
  );
}

function planMatrixShape(weight: Weight): MatrixShape | string {
  const [first = 0, second = 0] = weightDims(weight);
  const rank = weight.tensor.dims.length;
  if (rank !== 2) return `has ${rank} dimensions, and blocks are cut from matrices`;
  for (const use of weight.uses) {
    const obstacle = findProductObstacle(use);
    if (obstacle !== undefined) return obstacle;
  }
  const orders = new Set(weight.uses.map(isWeightTransposed));
  if (orders.size > 1) return "is used both as it is and transposed";
  return orders.has(true)
    ? { order: "nk", k: second, n: first }
    : { order: "kn", k: first, n: second };
}
