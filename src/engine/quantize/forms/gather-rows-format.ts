import { intAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import { gatherAxis, operatorName } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import {
  addAffineTensors,
  isHalfWeight,
  affinePlanBytes,
  affineFormat,
  weightDims,
} from "./affine-plan.ts";
import type { QuantizedTensorNames, AffinePlan } from "./affine-plan.ts";

/** int8 codes of an embedding table whose gathered rows alone are turned back into numbers. */
export const gatherRowsFormat: QuantizationFormat = (weight, recipe) => {
  const dims = weightDims(weight);
  for (const { node, input } of weight.uses) {
    const isRowGather =
      operatorName(node) === "Gather" && input === 0 && gatherAxis(node, dims.length) === 0;
    if (!isRowGather) return `is used by ${operatorName(node)}, which does not gather rows`;
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
    apply: (rewrite) => {
      const names = addAffineTensors(rewrite, weight, plan);
      for (const { node } of weight.uses) {
        if (isPerRow) replaceWithPerRowGather(rewrite, { node, weight, names });
        else replaceWithPerTensorGather(rewrite, node, names);
      }
    },
  };
};

interface RowGather {
  readonly node: NodeProto;
  readonly weight: Weight;
  readonly names: QuantizedTensorNames;
}

function replaceWithPerTensorGather(
  rewrite: GraphRewrite,
  node: NodeProto,
  names: QuantizedTensorNames,
): void {
  const [, indices = ""] = node.input;
  const quantizedValues = rewrite.names.allocate(`${node.output[0]}_codes`);
  const { scales, zeroPoints } = names;
  rewrite.replaceNode(node, [
    { opType: "Gather", input: [names.quantizedValues, indices], output: [quantizedValues] },
    {
      opType: "DequantizeLinear",
      input:
        zeroPoints === undefined
          ? [quantizedValues, scales]
          : [quantizedValues, scales, zeroPoints],
      output: node.output,
    },
  ]);
}

function replaceWithPerRowGather(rewrite: GraphRewrite, { node, weight, names }: RowGather): void {
  const [, indices = ""] = node.input;
  const value = (part: string) => rewrite.names.allocate(`${node.output[0]}_${part}`);
  const to = [intAttribute("to", isHalfWeight(weight) ? DataType.FLOAT16 : DataType.FLOAT)];
  const gathered = (table: string, part: string) => {
    const rows = value(part);
    return { rows, node: { opType: "Gather", input: [table, indices], output: [rows] } };
  };
  const quantizedValues = gathered(names.quantizedValues, "codes");
  const scales = gathered(names.scales, "scales");
  const numbers = value("numbers");
  const steps = [
    quantizedValues.node,
    scales.node,
    { opType: "Cast", input: [quantizedValues.rows], output: [numbers], attribute: to },
  ];
  let centred = numbers;
  if (names.zeroPoints !== undefined) {
    const zeroPoints = gathered(names.zeroPoints, "zero_points");
    const offsets = value("offsets");
    centred = value("centred");
    steps.push(
      zeroPoints.node,
      { opType: "Cast", input: [zeroPoints.rows], output: [offsets], attribute: to },
      { opType: "Sub", input: [numbers, offsets], output: [centred] },
    );
  }
  rewrite.replaceNode(node, [
    ...steps,
    { opType: "Mul", input: [centred, scales.rows], output: node.output },
  ]);
}
