import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { Weight, WeightUse } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription, QuantizedActivation } from "../graph-rewrite.ts";
import { weightDims } from "../weight-dims.ts";
import { addAffineTensors, affineFormat, affinePlanBytes } from "./affine-plan.ts";
import type { AffinePlan } from "./affine-plan.ts";
import { intAttributes } from "./int-attributes.ts";
import type { QuantizationFormat } from "./quantization-format.ts";
import type { QuantizedTensorNames } from "./quantized-tensors.ts";
import {
  findProductObstacle,
  isWeightTransposed,
  replaceMatrixProduct,
} from "./replace-matrix-product.ts";

/**
 * int8 values multiplied as integers with the activation, which is quantized when the model runs:
 * DynamicQuantizeLinear, MatMulInteger, Cast, Mul; the pattern that ONNX Runtime fuses.
 */
export const dynamicMatMulFormat: QuantizationFormat = (weight, recipe) => {
  const obstacle = findIntegerProductObstacle(weight);
  if (obstacle !== undefined) return obstacle;
  const transposed = isWeightTransposed(weight);
  const axis = transposed ? 0 : 1;
  const perChannel = recipe.granularity !== "tensor";
  const plan: AffinePlan = {
    axis: perChannel ? axis : undefined,
    format: affineFormat(recipe),
    transposed,
    scaleDims: perChannel ? [weightDims(weight)[axis] ?? 1] : [],
  };
  const range = recipe.reduceRange ? "7-bit codes" : "int8";
  const granularity = perChannel ? "with a scale for each output" : "with one scale";
  return {
    description: `${range} ${granularity}, inputs in uint8`,
    bytes: affinePlanBytes(weight, plan),
    opset: 11,
    apply: (rewrite) => replaceWithIntegerProducts(rewrite, weight, plan),
  };
};

function findIntegerProductObstacle(weight: Weight): string | undefined {
  const rank = weight.tensor.dims.length;
  if (rank !== 2) return `has ${rank} dimensions, and integer products take matrices`;
  if (weight.tensor.dataType !== DataType.FLOAT) {
    return "is not float32, the only type of dynamically quantized inputs";
  }
  return findProductObstacle(weight);
}

function replaceWithIntegerProducts(rewrite: GraphRewrite, weight: Weight, plan: AffinePlan): void {
  const names = addAffineTensors(rewrite, weight, plan);
  for (const use of weight.uses) {
    const multiply = (left: string, steps: NodeDescription[]) =>
      addIntegerMatMul(rewrite, { use, left, weight: names }, steps);
    replaceMatrixProduct(rewrite, { use, elementType: DataType.FLOAT, multiply });
  }
}

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
  const allocate = (part: string) => rewrite.names.allocate(`${use.node.output[0]}_${part}`);
  const activation = quantizeActivation(rewrite, { body: use.scope.body, name: left }, steps);
  const [sums, numbers] = [allocate("sums"), allocate("numbers")];
  const [scales, product] = [allocate("scales"), allocate("product")];
  const zeroPoints = weight.zeroPoints === undefined ? [] : [weight.zeroPoints];
  const values = [activation.quantizedValues, weight.quantizedValues];
  const attribute = intAttributes({ to: DataType.FLOAT });
  steps.push(
    {
      opType: "MatMulInteger",
      input: [...values, activation.zeroPoint, ...zeroPoints],
      output: [sums],
    },
    { opType: "Cast", input: [sums], output: [numbers], attribute },
    { opType: "Mul", input: [activation.scale, weight.scales], output: [scales] },
    { opType: "Mul", input: [numbers, scales], output: [product] },
  );
  return product;
}

/** Quantizes an activation once for all its users in a body. */
function quantizeActivation(
  rewrite: GraphRewrite,
  { body, name }: { body: WeightUse["scope"]["body"]; name: string },
  steps: NodeDescription[],
): QuantizedActivation {
  const byName = rewrite.quantizedActivations.get(body) ?? new Map<string, QuantizedActivation>();
  rewrite.quantizedActivations.set(body, byName);
  const existing = byName.get(name);
  if (existing !== undefined) return existing;
  const activation = {
    quantizedValues: rewrite.names.allocate(`${name}_quantized`),
    scale: rewrite.names.allocate(`${name}_scale`),
    zeroPoint: rewrite.names.allocate(`${name}_zero_point`),
  };
  byName.set(name, activation);
  const output = [activation.quantizedValues, activation.scale, activation.zeroPoint];
  steps.push({ opType: "DynamicQuantizeLinear", input: [name], output });
  return activation;
}
