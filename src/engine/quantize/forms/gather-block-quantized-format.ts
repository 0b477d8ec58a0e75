import { intAttribute } from "../../onnx/node-attributes.ts";
import { gatherAxis, operatorName } from "../channel-axis.ts";
import { addBlockTensors, blockPlanBytes, blockFormat, packedBlockPlan } from "./block-plan.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import { weightDims } from "./affine-plan.ts";

/** Codes of an embedding table with a scale for each block of a row, gathered by ONNX Runtime's GatherBlockQuantized. */
export function gatherBlockQuantizedFormat(bits: 4 | 8): QuantizationFormat {
  return (weight, recipe) => {
    const [rows = 0, columns = 0] = weightDims(weight);
    const rank = weight.tensor.dims.length;
    if (rank !== 2) return `has ${rank} dimensions, and blocks are cut from matrices`;
    if (bits === 4 && columns % 2 === 1)
      return "has rows of an odd length, which 4-bit codes cannot be packed in";
    for (const { node, input } of weight.uses) {
      const isRowGather =
        operatorName(node) === "Gather" && input === 0 && gatherAxis(node, rank) === 0;
      if (!isRowGather)
        return `is used by ${operatorName(node)}, which is neither a product of matrices nor gathers rows`;
    }
    const plan = packedBlockPlan(
      "gather",
      { order: "nk", k: columns, n: rows },
      blockFormat(bits, recipe),
    );
    return {
      description: `int${bits} with a scale for each ${recipe.blockSize} values of a row, for GatherBlockQuantized`,
      bytes: blockPlanBytes(weight, plan),
      opset: 0,
      apply: (rewrite) => {
        rewrite.requireContribOperators();
        const { quantizedValues, scales, zeroPoints } = addBlockTensors(rewrite, weight, plan);
        const attributes = { bits, block_size: recipe.blockSize, gather_axis: 0, quantize_axis: 1 };
        for (const { node } of weight.uses) {
          const [, indices = ""] = node.input;
          rewrite.replaceNode(node, [
            {
              opType: "GatherBlockQuantized",
              domain: "com.microsoft",
              input:
                zeroPoints === undefined
                  ? [quantizedValues, indices, scales]
                  : [quantizedValues, indices, scales, zeroPoints],
              output: node.output,
              attribute: Object.entries(attributes).map(([name, value]) =>
                intAttribute(name, value),
              ),
            },
          ]);
        }
      },
    };
  };
}
