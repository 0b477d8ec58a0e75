import type { Weight } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription } from "../graph-rewrite.ts";
import { addBlockTensors, blockFormat, blockPlanBytes, packedBlockPlan } from "./block-plan.ts";
import type { BlockPlan } from "./block-plan.ts";
import { intAttributes } from "./int-attributes.ts";
import { planMatrixShape } from "./plan-matrix-shape.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import { quantizedInputs } from "./quantized-tensors.ts";
import { replaceMatrixProduct } from "./replace-matrix-product.ts";

/** Values with a scale for each block of inputs, multiplied by ONNX Runtime's MatMulNBits. */
export function matMulNBitsFormat(bits: 4 | 8): QuantizationFormat {
  return (weight, recipe) => {
    const granularity = `a scale for each ${recipe.blockSize} inputs of an output`;
    const shape = planMatrixShape(weight);
    if (typeof shape === "string") return shape;
    const plan = packedBlockPlan("matmul", shape, blockFormat(bits, recipe));
    return {
      description: `int${bits} with ${granularity}, for MatMulNBits`,
      bytes: blockPlanBytes(weight, plan),
      opset: 0,
      apply: (rewrite) => replaceWithMatMulNBits(rewrite, weight, plan),
    };
  };
}

function replaceWithMatMulNBits(rewrite: GraphRewrite, weight: Weight, plan: BlockPlan): void {
  rewrite.requireContribOperators();
  const inputs = quantizedInputs(addBlockTensors(rewrite, weight, plan));
  const { k, n } = plan.shape;
  const { bits, blockSize } = plan.format;
  const attribute = intAttributes({ K: k, N: n, bits, block_size: blockSize });
  for (const use of weight.uses) {
    const multiply = (left: string, steps: NodeDescription[]) => {
      const product = rewrite.names.allocate(`${use.node.output[0]}_product`);
      const input = [left, ...inputs];
      const domain = "com.microsoft";
      steps.push({ opType: "MatMulNBits", domain, input, output: [product], attribute });
      return product;
    };
    replaceMatrixProduct(rewrite, { use, elementType: weight.tensor.dataType, multiply });
  }
}
