import { at } from "../../onnx/at.ts";
import { findAttribute, intAttributes } from "../../onnx/node-attributes.ts";
import { type NodeProto, TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import { tensorSource } from "../../onnx/read-tensor.ts";
import { isAttributeSet, operatorName } from "../channel-axis.ts";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import type { MeanInputs } from "../tasks/mean-errors.ts";
import type { ProductBias } from "../tasks/weight-task.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import type { AffineStorage, WeightFormat } from "../weight-format.ts";
import { requireProductMatrix } from "./consumer-matrix.ts";
import {
  findSource,
  isConvolution,
  isStatic,
  quantizeRange,
  requireDialect,
} from "./multiply-static.ts";

/** A bias that is computed with a weight. */
export interface ComputedBias {
  readonly task: ProductBias;
  readonly outputs: { readonly biasValues: number; readonly biasScales?: number };
  /** Its value as the operator takes it. */
  readonly name: string;
}

/**
 * Adds the int32 bias of the only operator that takes a weight; undefined where it has none of a
 * form. What rounding the weight changes in the outputs on average is subtracted from it where means
 * of the input are known: bias correction, Data-Free Quantization Through Weight Equalization and
 * Bias Correction, M. Nagel et al., arXiv 1906.04721. They stand for a convolution's padding too.
 */
export function addStaticBias(
  rewrite: GraphRewrite,
  weight: Weight,
  storage: AffineStorage,
): ComputedBias | undefined {
  const {
    activations: [codes],
    biases,
  } = requireDialect(storage);
  const found = biases === "int32" ? takeBias(rewrite, weight) : undefined;
  if (found === undefined) return undefined;
  const { name, consumer, dims, bytes } = found;
  const input = findSource(rewrite.index, consumer.scope, at(consumer.node.input, 0));
  const { scale: inputScale } = quantizeRange(rewrite.activationRanges.get(input), codes);
  const task = { ...found.task, inputScale };
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

/**
 * Adds the corrected bias, in float32, of the only operator that takes a weight which is restored
 * for it; undefined where means of its input are not known, or it has no bias.
 */
export function addCorrectedBias(
  rewrite: GraphRewrite,
  weight: Weight,
  format: WeightFormat,
): ComputedBias | undefined {
  const [input = ""] = listBiasedInputs(weight, format);
  const [consumer] = weight.consumers;
  if (consumer === undefined || !rewrite.inputMeans.has(input)) return undefined;
  const { node } = consumer;
  const found = hasBias(node) ? takeBias(rewrite, weight) : startBias(rewrite, weight, consumer);
  if (found === undefined) return undefined;
  const { task, dims, bytes } = found;
  const name = rewrite.names.allocate(`${found.name}_corrected`);
  const tensor = { name, dims, dataType: DataType.FLOAT, bytes };
  const changes = { input: [...node.input.slice(0, 2), name] };
  rewrite.replaceWithCopy(node, { before: [], changes, after: [] });
  return { task, outputs: { biasValues: rewrite.addComputedTensor(weight, tensor) }, name };
}

/** Takes the constant bias of an operator out of the graph, where nothing else uses it. */
function takeBias(rewrite: GraphRewrite, weight: Weight) {
  const [consumer, ...others] = weight.consumers;
  if (consumer === undefined || others.length > 0 || !addsBias(consumer.node)) return undefined;
  const { node, scope } = consumer;
  const value = rewrite.index.find(scope, node.input[2] ?? "");
  const tensor = value?.constant;
  if (value === undefined || tensor?.dataType !== DataType.FLOAT) return undefined;
  // A product may also add one number to all outputs.
  if (tensor.dims.length !== 1 || Number(tensor.dims[0]) !== countOutputs(weight, consumer))
    return undefined;
  const elements = Number(tensor.dims[0]);
  const source = tensorSource(rewrite.model, tensor);
  const task = { source, elements, ...describeInputs(rewrite, weight, consumer) };
  const { name, producer: constantNode, uses, isOutput, scope: owner } = value;
  if (uses.length === 1 && !isOutput) {
    rewrite.removeWeight({ name, scope: owner, tensor, constantNode });
  } else {
    rewrite.makeConstant(owner, name);
  }
  return { name, consumer, task, dims: [elements], bytes: 4 * elements };
}

/** The bias of a convolution that has none; undefined for other operators. */
function startBias(rewrite: GraphRewrite, weight: Weight, consumer: WeightConsumer) {
  if (!isConvolution(consumer.node)) return undefined;
  const [elements = 0] = weightDims(weight);
  const task = { source: undefined, elements, ...describeInputs(rewrite, weight, consumer) };
  return { name: `${weight.name}_bias`, task, dims: [elements], bytes: 4 * elements };
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

/** The values whose means correct the bias beside a weight, by their channels, which are axis 1. */
export function listBiasedInputs(weight: Weight, format: WeightFormat | undefined): string[] {
  const [consumer, ...others] = weight.consumers;
  if (consumer === undefined || others.length > 0) return [];
  const { node, scope } = consumer;
  if (scope.outer !== undefined || scope.body.$typeName !== "onnx.GraphProto") return [];
  if (format?.storage.kind !== "affine" || !addsBias(node)) return [];
  if (isAttributeSet(node, "transA")) return [];
  const { storage } = format;
  const isCorrected = isStatic(format)
    ? hasBias(node) && storage.dialect?.biases === "int32"
    : isRestored(format) && hasOutputScales(storage, weight, consumer);
  return isCorrected ? [at(node.input, 0)] : [];
}

function isRestored({ operations }: WeightFormat): boolean {
  return operations.every((each) => each === "restore");
}

/** Whether the codes of each output have one scale, and zero for 0. */
function hasOutputScales(
  { axis, format }: AffineStorage,
  weight: Weight,
  consumer: WeightConsumer,
): boolean {
  const isMoved = consumer.input !== 1 || consumer.view.nodes.length > 0;
  const hasZero = format.symmetric && format.type === "int8";
  if (isMoved || !hasZero || weight.tensor.dataType !== DataType.FLOAT) return false;
  if (axis === null) return true;
  return axis === (isConvolution(consumer.node) ? 0 : requireProductMatrix(consumer).n.source);
}

function hasBias({ input }: NodeProto): boolean {
  return (input[2] ?? "") !== "";
}

/** Whether the third input of an operator is added to its product as it is. */
function addsBias(node: NodeProto): boolean {
  if (isConvolution(node)) return true;
  const isOne = (name: string) => (findAttribute(node, name)?.f ?? 1) === 1;
  return operatorName(node) === "Gemm" && isOne("alpha") && isOne("beta");
}
