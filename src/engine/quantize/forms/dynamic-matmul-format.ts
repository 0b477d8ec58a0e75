import { intAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { WeightUse } from "../find-weights.ts";
import type { NodeDescription, QuantizedActivation, GraphRewrite } from "../graph-rewrite.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import {
  isWeightTransposed,
  findProductObstacle,
  replaceMatrixProduct,
} from "./replace-matrix-product.ts";
import { addAffineTensors, affinePlanBytes, affineFormat, weightDims } from "./affine-plan.ts";
import type { QuantizedTensorNames, AffinePlan } from "./affine-plan.ts";

/**
 * int8 codes multiplied as integers with the activation, which is quantized when the model runs:
 * DynamicQuantizeLinear, MatMulInteger, Cast, Mul; the pattern that ONNX Runtime fuses.
 */
export const dynamicMatMulFormat: QuantizationFormat = (weight, recipe) => {
  const dims = weightDims(weight);
  if (dims.length !== 2) return `has ${dims.length} dimensions, and integer products take matrices`;
  if (weight.tensor.dataType !== DataType.FLOAT)
    return "is not float32, the only type of dynamically quantized inputs";
  for (const use of weight.uses) {
    const obstacle = findProductObstacle(use);
    if (obstacle !== undefined) return obstacle;
  }
  const transposed = new Set(weight.uses.map(isWeightTransposed));
  if (transposed.size > 1) return "is used both as it is and transposed";
  const isNk = transposed.has(true);
  const channel = isNk ? 0 : 1;
  const perChannel = recipe.granularity !== "tensor";
  const plan: AffinePlan = {
    axis: perChannel ? channel : undefined,
    format: affineFormat(recipe),
    transposed: isNk,
    scaleDims: perChannel ? [dims[channel] ?? 1] : [],
  };
  const range = recipe.reduceRange ? "7-bit codes" : "int8";
  return {
    description: `${range} ${perChannel ? "with a scale for each output" : "with one scale"}, inputs in uint8`,
    bytes: affinePlanBytes(weight, plan),
    opset: 11,
    apply: (rewrite) => {
      const names = addAffineTensors(rewrite, weight, plan);
      for (const use of weight.uses) {
        const multiply = (left: string, steps: NodeDescription[]) =>
          addIntegerMatMul(rewrite, { use, left, weight: names }, steps);
        replaceMatrixProduct(rewrite, { use, elementType: DataType.FLOAT, multiply });
      }
    },
  };
};

interface IntegerProduct {
  readonly use: WeightUse;
  readonly left: string;
  readonly weight: QuantizedTensorNames;
}

function addIntegerMatMul(
  rewrite: GraphRewrite,
  { use, left, weight }: IntegerProduct,
  steps: NodeDescription[],
): string {
  const value = (part: string) => rewrite.names.allocate(`${use.node.output[0]}_${part}`);
  const quantized = quantizeActivation(rewrite, { body: use.scope.body, name: left }, steps);
  const [sums, numbers, scales, product] = [
    value("sums"),
    value("numbers"),
    value("scales"),
    value("product"),
  ];
  const zeroPoints = weight.zeroPoints === undefined ? [] : [weight.zeroPoints];
  steps.push(
    {
      opType: "MatMulInteger",
      input: [
        quantized.quantizedValues,
        weight.quantizedValues,
        quantized.zeroPoint,
        ...zeroPoints,
      ],
      output: [sums],
    },
    {
      opType: "Cast",
      input: [sums],
      output: [numbers],
      attribute: [intAttribute("to", DataType.FLOAT)],
    },
    { opType: "Mul", input: [quantized.scale, weight.scales], output: [scales] },
    { opType: "Mul", input: [numbers, scales], output: [product] },
  );
  return product;
}

/** The quantized form of a value, made once for all its users in a body. */
function quantizeActivation(
  rewrite: GraphRewrite,
  { body, name }: { body: WeightUse["scope"]["body"]; name: string },
  steps: NodeDescription[],
): QuantizedActivation {
  const known = rewrite.quantizedActivations.get(body) ?? new Map<string, QuantizedActivation>();
  rewrite.quantizedActivations.set(body, known);
  const found = known.get(name);
  if (found !== undefined) return found;
  const result = {
    quantizedValues: rewrite.names.allocate(`${name}_quantized`),
    scale: rewrite.names.allocate(`${name}_scale`),
    zeroPoint: rewrite.names.allocate(`${name}_zero_point`),
  };
  known.set(name, result);
  const output = [result.quantizedValues, result.scale, result.zeroPoint];
  steps.push({ opType: "DynamicQuantizeLinear", input: [name], output });
  return result;
}
