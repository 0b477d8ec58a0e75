import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import { isRowGather, operatorName } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription } from "../graph-rewrite.ts";
import { isHalfWeight } from "../source-weight.ts";
import { weightDims } from "../weight-dims.ts";
import { addAffineTensors, affineFormat, affinePlanBytes } from "./affine-plan.ts";
import type { AffinePlan } from "./affine-plan.ts";
import { intAttributes } from "./int-attributes.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import { quantizedInputs } from "./quantized-tensors.ts";
import type { QuantizedTensorNames } from "./quantized-tensors.ts";

/** int8 values of an embedding table; the gathered rows alone are dequantized. */
export const gatherRowsFormat: QuantizationFormat = (weight, recipe) => {
  const dims = weightDims(weight);
  const other = weight.uses.find((use) => !isRowGather(use, dims.length));
  if (other !== undefined) {
    return `is used by ${operatorName(other.node)}, which does not gather rows`;
  }
  const isPerRow = recipe.granularity !== "tensor";
  const plan: AffinePlan = {
    axis: isPerRow ? 0 : undefined,
    format: { ...affineFormat(recipe), reduceRange: false },
    transposed: false,
    scaleDims: isPerRow ? dims.map((dim, axis) => (axis === 0 ? dim : 1)) : [],
  };
  return {
    description: isPerRow ? "int8 with a scale for each row" : "int8 with one scale",
    bytes: affinePlanBytes(weight, plan),
    opset: isHalfWeight(weight) && !isPerRow ? 19 : 10,
    apply: (rewrite) => replaceGathers(rewrite, weight, plan),
  };
};

function replaceGathers(rewrite: GraphRewrite, weight: Weight, plan: AffinePlan): void {
  const names = addAffineTensors(rewrite, weight, plan);
  for (const { node } of weight.uses) {
    if (plan.axis === undefined) replaceWithPerTensorGather(rewrite, node, names);
    else replaceWithPerRowGather(rewrite, { node, weight, names });
  }
}

function replaceWithPerTensorGather(
  rewrite: GraphRewrite,
  node: NodeProto,
  names: QuantizedTensorNames,
): void {
  const [, indices = ""] = node.input;
  const quantizedValues = rewrite.names.allocate(`${node.output[0]}_codes`);
  const input = quantizedInputs({ ...names, quantizedValues });
  rewrite.replaceNode(node, [
    { opType: "Gather", input: [names.quantizedValues, indices], output: [quantizedValues] },
    { opType: "DequantizeLinear", input, output: node.output },
  ]);
}

interface RowGather {
  readonly node: NodeProto;
  readonly weight: Weight;
  readonly names: QuantizedTensorNames;
}

/** Gathers quantized values, scales and zero points, and dequantizes them step by step. */
function replaceWithPerRowGather(rewrite: GraphRewrite, { node, weight, names }: RowGather): void {
  const [, indices = ""] = node.input;
  const attribute = intAttributes({ to: isHalfWeight(weight) ? DataType.FLOAT16 : DataType.FLOAT });
  const steps: NodeDescription[] = [];
  const add = (part: string, step: Omit<NodeDescription, "output">) => {
    const result = rewrite.names.allocate(`${node.output[0]}_${part}`);
    steps.push({ ...step, output: [result] });
    return result;
  };
  const gather = (table: string, part: string) =>
    add(part, { opType: "Gather", input: [table, indices] });
  const cast = (value: string, part: string) =>
    add(part, { opType: "Cast", input: [value], attribute });
  const quantizedValues = gather(names.quantizedValues, "codes");
  const scales = gather(names.scales, "scales");
  let numbers = cast(quantizedValues, "numbers");
  if (names.zeroPoints !== undefined) {
    const offsets = cast(gather(names.zeroPoints, "zero_points"), "offsets");
    numbers = add("centred", { opType: "Sub", input: [numbers, offsets] });
  }
  rewrite.replaceNode(node, [
    ...steps,
    { opType: "Mul", input: [numbers, scales], output: node.output },
  ]);
}
