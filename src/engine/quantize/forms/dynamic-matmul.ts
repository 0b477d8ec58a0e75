import { create } from "@bufbuild/protobuf";
import { findAttribute, intAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType, TensorProtoSchema } from "../../onnx/onnx_pb.js";
import { isSet, operatorOf } from "../channel-axis.ts";
import type { WeightUse } from "../find-weights.ts";
import type { QuantizedInput, Rewrite } from "../rewrite.ts";
import type { Form } from "./form.ts";
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
  for (const { node, input } of weight.uses) {
    const operator = operatorOf(node);
    if (operator !== "MatMul" && operator !== "Gemm") return `is used by ${operator}, which has no integer product`;
    if (input !== 1) return `is input ${input} of ${operator}, and integer products take weights as input 1`;
  }
  const transposed = new Set(weight.uses.map(({ node }) => isTransposed(node)));
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
      for (const use of weight.uses) replaceProduct(rewrite, use, names);
    },
  };
};

function isTransposed(node: WeightUse["node"]): boolean {
  return operatorOf(node) === "Gemm" && isSet(node, "transB");
}

function replaceProduct(rewrite: Rewrite, { node, scope }: WeightUse, names: LinearNames): void {
  const [activation = "", , bias = ""] = node.input;
  const value = (part: string) => rewrite.names.take(`${node.output[0]}_${part}`);
  const steps: Parameters<Rewrite["replace"]>[1][number][] = [];
  let input = activation;
  if (isSet(node, "transA")) {
    input = value("transposed");
    steps.push({ opType: "Transpose", input: [activation], output: [input] });
  }
  const { added, result: quantized } = quantizedInput(rewrite, scope.body, input);
  if (added !== undefined) steps.push(added);
  const [sums, numbers, scales] = [value("sums"), value("numbers"), value("scales")];
  const zeroPoints = names.zeroPoints === undefined ? [] : [names.zeroPoints];
  steps.push(
    {
      opType: "MatMulInteger",
      input: [quantized.codes, names.codes, quantized.zeroPoint, ...zeroPoints],
      output: [sums],
    },
    { opType: "Cast", input: [sums], output: [numbers], attribute: [intAttribute("to", DataType.FLOAT)] },
    { opType: "Mul", input: [quantized.scale, names.scales], output: [scales] },
  );
  let result = value("product");
  steps.push({ opType: "Mul", input: [numbers, scales], output: [result] });
  const scaled = (name: string, factor: "alpha" | "beta") => {
    const number = findAttribute(node, factor)?.f ?? 1;
    if (number === 1) return name;
    const product = value(factor);
    steps.push({ opType: "Mul", input: [name, scalar(rewrite, scope.body, number)], output: [product] });
    return product;
  };
  if (node.opType === "Gemm") {
    result = scaled(result, "alpha");
    const scaledBias = bias === "" ? "" : scaled(bias, "beta");
    if (scaledBias !== "") steps.push({ opType: "Add", input: [result, scaledBias], output: [value("sum")] });
  }
  const last = steps.at(-1);
  if (last !== undefined) rewrite.replace(node, [...steps.slice(0, -1), { ...last, output: node.output }]);
}

/** The quantized form of a value, made once for all its users in a body. */
function quantizedInput(rewrite: Rewrite, body: WeightUse["scope"]["body"], name: string) {
  const known = rewrite.quantizedInputs.get(body) ?? new Map<string, QuantizedInput>();
  rewrite.quantizedInputs.set(body, known);
  const found = known.get(name);
  if (found !== undefined) return { added: undefined, result: found };
  const result = {
    codes: rewrite.names.take(`${name}_quantized`),
    scale: rewrite.names.take(`${name}_scale`),
    zeroPoint: rewrite.names.take(`${name}_zero_point`),
  };
  known.set(name, result);
  const output = [result.codes, result.scale, result.zeroPoint];
  return { added: { opType: "DynamicQuantizeLinear", input: [name], output }, result };
}

function scalar(rewrite: Rewrite, body: WeightUse["scope"]["body"], value: number): string {
  const name = rewrite.names.take("factor");
  rewrite.addConstant(body, create(TensorProtoSchema, { name, dataType: DataType.FLOAT, floatData: [value] }));
  return name;
}
