import { intAttribute } from "../../onnx/node-attributes.ts";
import { gatherAxis, operatorOf } from "../channel-axis.ts";
import { addBlockCodes, blockBytes, blockFormat, packedPlan } from "./block-form.ts";
import type { Form } from "./form.ts";
import { weightDims } from "./linear-form.ts";

/** Codes of an embedding table with a scale for each block of a row, gathered by ONNX Runtime's GatherBlockQuantized. */
export function gatheredBlocks(bits: 4 | 8): Form {
  return (weight, recipe) => {
    const [rows = 0, columns = 0] = weightDims(weight);
    const rank = weight.tensor.dims.length;
    if (rank !== 2) return `has ${rank} dimensions, and blocks are cut from matrices`;
    if (bits === 4 && columns % 2 === 1) return "has rows of an odd length, which 4-bit codes cannot be packed in";
    for (const { node, input } of weight.uses) {
      const isRowGather = operatorOf(node) === "Gather" && input === 0 && gatherAxis(node, rank) === 0;
      if (!isRowGather)
        return `is used by ${operatorOf(node)}, which is neither a product of matrices nor gathers rows`;
    }
    const plan = packedPlan("gather", { order: "nk", k: columns, n: rows }, blockFormat(bits, recipe));
    return {
      description: `int${bits} with a scale for each ${recipe.blockSize} values of a row, for GatherBlockQuantized`,
      bytes: blockBytes(weight, plan),
      opset: 0,
      apply: (rewrite) => {
        rewrite.needContrib();
        const { codes, scales, zeroPoints } = addBlockCodes(rewrite, weight, plan);
        const attributes = { bits, block_size: recipe.blockSize, gather_axis: 0, quantize_axis: 1 };
        for (const { node } of weight.uses) {
          const [, indices = ""] = node.input;
          rewrite.replace(node, [
            {
              opType: "GatherBlockQuantized",
              domain: "com.microsoft",
              input: zeroPoints === undefined ? [codes, indices, scales] : [codes, indices, scales, zeroPoints],
              output: node.output,
              attribute: Object.entries(attributes).map(([name, value]) => intAttribute(name, value)),
            },
          ]);
        }
      },
    };
  };
}
