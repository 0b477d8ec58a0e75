import { intAttribute } from "../../onnx/node-attributes.ts";
import type { Weight } from "../find-weights.ts";
import { blocksOf } from "../kernels/block-format.ts";
import type { BlockFormat, MatrixShape } from "../kernels/block-format.ts";
import type { NewNode } from "../rewrite.ts";
import { addBlockCodes, blockBytes, blockFormat, linearBlockPlan, packedPlan } from "./block-form.ts";
import type { Form } from "./form.ts";
import { isTransposed, productObstacle, replaceProduct } from "./gemm-steps.ts";
import { weightDims } from "./linear-form.ts";

/** Codes with a scale for each block of inputs, multiplied by ONNX Runtime's MatMulNBits. */
export function nbitsProduct(bits: 4 | 8): Form {
  return (weight, recipe) => {
    const shape = matrixShape(weight);
    if (typeof shape === "string") return shape;
    const plan = packedPlan("matmul", shape, blockFormat(bits, recipe));
    const { k, n } = shape;
    return {
      description: `int${bits} with a scale for each ${recipe.blockSize} inputs of an output, for MatMulNBits`,
      bytes: blockBytes(weight, plan),
      opset: 0,
      apply: (rewrite) => {
        rewrite.needContrib();
        const { codes, scales, zeroPoints } = addBlockCodes(rewrite, weight, plan);
        const attributes = { K: k, N: n, bits, block_size: recipe.blockSize };
        const attribute = Object.entries(attributes).map(([name, value]) => intAttribute(name, value));
        for (const use of weight.uses) {
          const multiply = (left: string, steps: NewNode[]) => {
            const product = rewrite.names.take(`${use.node.output[0]}_product`);
            const input = zeroPoints === undefined ? [left, codes, scales] : [left, codes, scales, zeroPoints];
            steps.push({ opType: "MatMulNBits", domain: "com.microsoft", input, output: [product], attribute });
            return product;
          };
          replaceProduct(rewrite, { use, elementType: weight.tensor.dataType, multiply });
        }
      },
    };
  };
}

/** Codes with a scale for each block of inputs, turned back by the standard DequantizeLinear; runtimes fuse it with the product. */
export function blockedDequantize(bits: 4 | 8): Form {
  return (weight, recipe) => {
    const shape = matrixShape(weight);
    if (typeof shape === "string") return shape;
    const format = blockFormat(bits, recipe);
    if (shape.order === "nk" && !rowsFillBytes(shape, format)) {
      return `has rows of ${shape.k} values, whose codes or zero points do not fill whole bytes`;
    }
    const plan = linearBlockPlan(shape, format);
    return {
      description: `int${bits} with a scale for each ${recipe.blockSize} inputs of an output`,
      bytes: blockBytes(weight, plan),
      opset: 21,
      apply: (rewrite) => {
        const { codes, scales, zeroPoints } = addBlockCodes(rewrite, weight, plan);
        rewrite.addFirst(weight.scope.body, {
          opType: "DequantizeLinear",
          input: zeroPoints === undefined ? [codes, scales] : [codes, scales, zeroPoints],
          output: [weight.name],
          attribute: [intAttribute("axis", shape.order === "kn" ? 0 : 1), intAttribute("block_size", recipe.blockSize)],
        });
      },
    };
  };
}

function rowsFillBytes({ k }: MatrixShape, format: BlockFormat): boolean {
  return format.bits === 8 || (k % 2 === 0 && (format.symmetric || blocksOf(k, format) % 2 === 0));
}

function matrixShape(weight: Weight): MatrixShape | string {
  const [first = 0, second = 0] = weightDims(weight);
  const rank = weight.tensor.dims.length;
  if (rank !== 2) return `has ${rank} dimensions, and blocks are cut from matrices`;
  for (const use of weight.uses) {
    const obstacle = productObstacle(use);
    if (obstacle !== undefined) return obstacle;
  }
  const orders = new Set(weight.uses.map(isTransposed));
  if (orders.size > 1) return "is used both as it is and transposed";
  return orders.has(true) ? { order: "nk", k: second, n: first } : { order: "kn", k: first, n: second };
}
