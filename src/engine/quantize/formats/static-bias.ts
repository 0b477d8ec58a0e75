import { at } from "../../onnx/at.ts";
import { findAttribute } from "../../onnx/node-attributes.ts";
import { type NodeProto, TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { tensorSource } from "../../onnx/read-tensor.ts";
import { isAttributeSet, operatorName } from "../channel-axis.ts";
import type { ActivationCodes } from "../dialects.ts";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import type { MeanInputs } from "../tasks/mean-errors.ts";
import type { ProductBias } from "../tasks/weight-task.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import type { AffineStorage } from "../weight-format.ts";
import { requireProductMatrix } from "./consumer-matrix.ts";
import { intAttributes } from "./int-attributes.ts";
import { findSource, isConvolution, quantizeRange, requireDialect } from "./multiply-static.ts";

/** An int32 bias that is computed with a weight. */
export interface StaticBias {
  readonly task: ProductBias;
  readonly outputs: { readonly biasValues: number; readonly biasScales: number };
  /** Its value as the operator takes it. */
  readonly name: string;
}

/**
 * Adds the bias of the only operator that takes a weight; undefined where it has none of a form.
 * What rounding the weight changes in the outputs on average is subtracted from it where means of
 * the input are known: bias correction, Data-Free Quantization Through Weight Equalization and Bias
 * Correction, M. Nagel et al., arXiv 1906.04721. They stand for a convolution's padding too.
 */
export function addStaticBias(
  rewrite: GraphRewrite,
  weight: Weight,
  storage: AffineStorage,
): StaticBias | undefined {
  const {
    activations: [codes],
    biases,
  } = requireDialect(storage);
  const found = biases === "int32" ? takeBias(rewrite, weight, codes) : undefined;
  if (found === undefined) return undefined;
  const { name, task } = found;
  const dims = [task.elements];
  const bytes = 4 * task.elements;
  const values = rewrite.names.allocate(`${name}_quantized`);
  const integers = { name: values, dims, dataType: DataType.INT32, bytes };
  const scales = rewrite.names.allocate(`${name}_scale`);
  const isVector = storage.axis !== null;
  const numbers = { name: scales, dims: isVector ? dims : [], dataType: DataType.FLOAT };
  const restored = rewrite.names.allocate(`${name}_rounded`);
  rewrite.prependNode(weight.scope.body, {
    opType: "DequantizeLinear",
    input: [values, scales],
    output: [restored],
    attribute: isVector ? intAttributes({ axis: 0 }) : [],
  });
  const outputs = {
    biasValues: rewrite.addComputedTensor(weight, integers),
    biasScales: rewrite.addComputedTensor(weight, { ...numbers, bytes: isVector ? bytes : 4 }),
  };
  return { task, outputs, name: restored };
}

/** Takes the constant bias of an operator out of the graph, where nothing else uses it. */
function takeBias(rewrite: GraphRewrite, weight: Weight, codes: ActivationCodes) {
  const [consumer, ...others] = weight.consumers;
  if (consumer === undefined || others.length > 0 || !addsBias(consumer.node)) return undefined;
  const { node, scope } = consumer;
  const value = rewrite.index.find(scope, node.input[2] ?? "");
  const tensor = value?.constant;
  if (value === undefined || tensor?.dataType !== DataType.FLOAT) return undefined;
  // A product may also add one number to all outputs.
  if (tensor.dims.length !== 1 || Number(tensor.dims[0]) !== countOutputs(weight, consumer))
    return undefined;
  const input = findSource(rewrite.index, scope, at(node.input, 0));
  const task = {
    source: tensorSource(rewrite.model, tensor),
    elements: Number(tensor.dims[0]),
    inputScale: quantizeRange(rewrite.activationRanges.get(input), codes).scale,
    ...describeInputs(rewrite, weight, consumer),
  };
  const { name, producer: constantNode, uses, isOutput, scope: owner } = value;
  if (uses.length === 1 && !isOutput) {
    rewrite.removeWeight({ name, scope: owner, tensor, constantNode });
  } else {
    rewrite.makeConstant(owner, name);
  }
  return { name, task };
}

function countOutputs(weight: Weight, consumer: WeightConsumer): number | undefined {
  return isConvolution(consumer.node)
    ? weightDims(weight)[0]
    : requireProductMatrix(consumer).n.size;
}

function describeInputs(
  { inputMeans }: GraphRewrite,
  weight: Weight,
  { node, ...consumer }: WeightConsumer,
): { inputs?: MeanInputs } {
  const means = inputMeans.get(at(node.input, 0));
  const dims = weightDims(weight);
  if (means === undefined) return {};
  if (isConvolution(node)) {
    const [outputs = 0, groupInputs = 0] = dims;
    const steps = { output: countElements(dims.slice(1)), input: countElements(dims.slice(2)) };
    return { inputs: { means, groups: means.length / groupInputs, outputs, steps } };
  }
  const { k, n } = requireProductMatrix({ node, ...consumer });
  const stepOf = (axis: number) => countElements(dims.slice(axis + 1));
  const steps = { output: stepOf(n.source), input: stepOf(k.source) };
  return { inputs: { means, groups: 1, outputs: n.size, steps } };
}

/** The value whose means correct an operator's bias, by its channels, which are axis 1. */
export function findBiasedInput({ node }: WeightConsumer): string | undefined {
  const isBiased = (node.input[2] ?? "") !== "" && addsBias(node);
  return isBiased && !isAttributeSet(node, "transA") ? node.input[0] : undefined;
}

/** Whether the third input of an operator is added to its product as it is. */
function addsBias(node: NodeProto): boolean {
  if (isConvolution(node)) return true;
  const isOne = (name: string) => (findAttribute(node, name)?.f ?? 1) === 1;
  return operatorName(node) === "Gemm" && isOne("alpha") && isOne("beta");
}
