import { isRowGather, operatorName } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { weightDims } from "../weight-dims.ts";
import { addBlockTensors, blockFormat, blockPlanBytes, packedBlockPlan } from "./block-plan.ts";
import type { BlockPlan } from "./block-plan.ts";
import { intAttributes } from "./int-attributes.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import { quantizedInputs } from "./quantized-tensors.ts";

/**
 * An embedding table with a scale for each block of a row, gathered by ONNX Runtime's
 * GatherBlockQuantized.
 */
export function gatherBlockQuantizedFormat(bits: 4 | 8): QuantizationFormat {
  return (weight, recipe) => {
    const granularity = `a scale for each ${recipe.blockSize} values of a row`;
    const obstacle = findTableObstacle(weight, bits);
    if (obstacle !== undefined) return obstacle;
    const [rows = 0, columns = 0] = weightDims(weight);
    const shape = { order: "nk", k: columns, n: rows } as const;
    const plan = packedBlockPlan("gather", shape, blockFormat(bits, recipe));
    return {
      description: `int${bits} with ${granularity}, for GatherBlockQuantized`,
      bytes: blockPlanBytes(weight, plan),
      opset: 0,
      apply: (rewrite) => replaceWithBlockGather(rewrite, weight, plan),
    };
  };
}

function findTableObstacle(weight: Weight, bits: 4 | 8): string | undefined {
  const [, columns = 0] = weightDims(weight);
  const rank = weight.tensor.dims.length;
  if (rank !== 2) return `has ${rank} dimensions, and blocks are cut from matrices`;
  if (bits === 4 && columns % 2 === 1) {
    return "has rows of an odd length, which 4-bit codes cannot be packed in";
  }
  const other = weight.uses.find((use) => !isRowGather(use, rank));
  if (other === undefined) return undefined;
  const operator = operatorName(other.node);
  return `is used by ${operator}, which is neither a product of matrices nor gathers rows`;
}

function replaceWithBlockGather(rewrite: GraphRewrite, weight: Weight, plan: BlockPlan): void {
  rewrite.requireContribOperators();
  const [quantizedValues = "", ...parameters] = quantizedInputs(
    addBlockTensors(rewrite, weight, plan),
  );
  const { bits, blockSize } = plan.format;
  const attributes = { bits, block_size: blockSize, gather_axis: 0, quantize_axis: 1 };
  for (const { node } of weight.uses) {
    const [, indices = ""] = node.input;
    const gather = {
      opType: "GatherBlockQuantized",
      domain: "com.microsoft",
      input: [quantizedValues, indices, ...parameters],
      output: node.output,
      attribute: intAttributes(attributes),
    };
    rewrite.replaceNode(node, [gather]);
  }
}
