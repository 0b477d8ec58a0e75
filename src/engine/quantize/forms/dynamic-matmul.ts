import { intAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { WeightUse } from "../find-weights.ts";
import type { NewNode, QuantizedInput, Rewrite } from "../rewrite.ts";
import type { Form } from "./form.ts";
import { isTransposed, productObstacle, replaceProduct } from "./gemm-steps.ts";
import { addLinearCodes, linearBytes, linearFormat, weightDims } from "./linear-form.ts";
import type { LinearNames, LinearPlan } from "./linear-form.ts";

/**
 * int8 codes multiplied as integers with the activation, which is quantized when the model runs:
 * DynamicQuantizeLinear, MatMulInteger, Cast, Mul; the pattern that ONNX Runtime fuses.
 */
export const dynamicMatmul: Form = (weight, recipe) => {
  const dims = weightDims(weight);
  if (dims.length !== 2) return `has ${dims.length} dimensions, and integer products take matrices`;
  if (weight.tensor.dataType !== DataType.FLOAT) return "is not float32, the only type of dynamically quantized inputs";
  for (const use of weight.uses) {
    const obstacle = productObstacle(use);
    if (obstacle !== undefined) return obstacle;
  }
  const transposed = new Set(weight.uses.map(isTransposed));
  if (transposed.size > 1) return "is used both as it is and transposed";
  const isNk = transposed.has(true);
  const channel = isNk ? 0 : 1;
  const perChannel = recipe.granularity !== "tensor";
  const plan: LinearPlan = {
    axis: perChannel ? channel : undefined,
    format: linearFormat(recipe),
    transposed: isNk,
    scaleDims: perChannel ? [dims[channel] ?? 1] : [],
  };
  const range = recipe.reduceRange ? "7-bit codes" : "int8";
  return {
    description: `${range} ${perChannel ? "with a scale for each output" : "with one scale"}, inputs in uint8`,
    bytes: linearBytes(weight, plan),
    opset: 11,
    apply: (rewrite) => {
      const names = addLinearCodes(rewrite, weight, plan);
      for (const use of weight.uses) {
        const multiply = (left: string, steps: NewNode[]) =>
          multiplyIntegers(rewrite, { use, left, weight: names }, steps);
        replaceProduct(rewrite, { use, elementType: DataType.FLOAT, multiply });
      }
    },
  };
};

interface IntegerProduct {
  readonly use: WeightUse;
  readonly left: string;
  readonly weight: LinearNames;
}

function multiplyIntegers(rewrite: Rewrite, { use, left, weight }: IntegerProduct, steps: NewNode[]): string {
  const value = (part: string) => rewrite.names.take(`${use.node.output[0]}_${part}`);
  const quantized = quantizedInput(rewrite, { body: use.scope.body, name: left }, steps);
  const [sums, numbers, scales, product] = [value("sums"), value("numbers"), value("scales"), value("product")];
  const zeroPoints = weight.zeroPoints === undefined ? [] : [weight.zeroPoints];
  steps.push(
    {
      opType: "MatMulInteger",
      input: [quantized.codes, weight.codes, quantized.zeroPoint, ...zeroPoints],
      output: [sums],
    },
    { opType: "Cast", input: [sums], output: [numbers], attribute: [intAttribute("to", DataType.FLOAT)] },
    { opType: "Mul", input: [quantized.scale, weight.scales], output: [scales] },
    { opType: "Mul", input: [numbers, scales], output: [product] },
  );
  return product;
}

/** The quantized form of a value, made once for all its users in a body. */
function quantizedInput(
  rewrite: Rewrite,
  { body, name }: { body: WeightUse["scope"]["body"]; name: string },
  steps: NewNode[],
): QuantizedInput {
  const known = rewrite.quantizedInputs.get(body) ?? new Map<string, QuantizedInput>();
  rewrite.quantizedInputs.set(body, known);
  const found = known.get(name);
  if (found !== undefined) return found;
  const result = {
    codes: rewrite.names.take(`${name}_quantized`),
    scale: rewrite.names.take(`${name}_scale`),
    zeroPoint: rewrite.names.take(`${name}_zero_point`),
  };
  known.set(name, result);
  const output = [result.codes, result.scale, result.zeroPoint];
  steps.push({ opType: "DynamicQuantizeLinear", input: [name], output });
  return result;
}
