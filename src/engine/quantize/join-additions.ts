import { create } from "@bufbuild/protobuf";
import {
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  TensorProto_DataType as DataType,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { readTensor } from "../onnx/read-tensor.ts";
import { elementCount } from "../onnx/tensor-shape.ts";
import { operatorName } from "./channel-axis.ts";
import { findOnlyUse, GraphIndex, type GraphValue, type Scope } from "./graph-index.ts";

/**
 * Makes a Gemm of a MatMul of two matrices and the Add of a constant vector, as ONNX Runtime does when
 * it loads a model (`matmul_add_fusion.cc`): the vector is a bias then, which is added in integers.
 */
export function joinAdditions(model: OnnxModel, graph: GraphProto): void {
  const index = new GraphIndex(model.proto);
  const lookup = { model, index, scope: { body: graph, outer: undefined } };
  const joined = new Map<NodeProto, NodeProto | undefined>();
  for (const node of graph.node) {
    const [data = "", weight] = node.input;
    const joint = findJoint(lookup, node, data);
    const { dims, dataType } = find(lookup, weight)?.constant ?? {};
    const vector = find(lookup, joint?.other)?.constant?.dims;
    // The runtime has no Gemm of integers.
    const isMatrix = dims?.length === 2 && dataType === DataType.FLOAT;
    const isBias = isMatrix && vector?.length === 1 && vector[0] === dims[1];
    if (joint === undefined || !isBias) continue;
    const { name } = node;
    const input = [...node.input, joint.other];
    const gemm = { name, opType: "Gemm", input, output: joint.addition.output };
    joined.set(node, undefined);
    joined.set(joint.addition, create(NodeProtoSchema, gemm));
  }
  graph.node = graph.node.flatMap((node) => (joined.has(node) ? (joined.get(node) ?? []) : [node]));
}

interface Lookup {
  readonly model: OnnxModel;
  readonly index: GraphIndex;
  readonly scope: Scope;
}

/** The Add that a MatMul of two matrices becomes a Gemm with, and what it adds. */
export function findJoint(lookup: Lookup, product: NodeProto, data: string) {
  if (operatorName(product) !== "MatMul" || !isMatrix(lookup, data)) return undefined;
  const use = findOnlyUse(find(lookup, product.output[0]), lookup.scope.body);
  if (use === undefined) return undefined;
  return operatorName(use.node) === "Add"
    ? { addition: use.node, other: use.node.input[1 - use.input] ?? "" }
    : undefined;
}

/** Whether a value is known to have two dimensions. */
function isMatrix(lookup: Lookup, name: string): boolean {
  const producer = find(lookup, name)?.producer;
  if (producer === undefined) return false;
  const operator = operatorName(producer);
  return operator === "Flatten" || (operator === "Reshape" && isPair(lookup, producer.input[1]));
}

/** Whether a shape is known to have two numbers. */
function isPair(lookup: Lookup, name: string | undefined): boolean {
  const value = find(lookup, name);
  if (value?.constant !== undefined) return elementCount(value.constant.dims) === 2;
  const { producer } = value ?? {};
  if (producer === undefined || operatorName(producer) !== "Concat") return false;
  return producer.input.length === 2 && producer.input.every((part) => isNumber(lookup, part));
}

/** Whether a part of a shape is known to be a single number: a constant, or one of another shape. */
function isNumber(lookup: Lookup, name: string): boolean {
  const value = skipCasts(lookup, name);
  if (value?.constant !== undefined) return elementCount(value.constant.dims) === 1;
  if (value?.producer === undefined) return false;
  const [list = "", first, second] = value.producer.input;
  if (skipCasts(lookup, list)?.producer?.opType !== "Shape") return false;
  switch (operatorName(value.producer)) {
    case "Gather":
      return elementCount(find(lookup, first)?.constant?.dims ?? [0n]) === 1;
    case "Slice":
      return readInteger(lookup, first) === 0n && readInteger(lookup, second) === 1n;
    default:
      return false;
  }
}

function find({ index, scope }: Lookup, name: string | undefined): GraphValue | undefined {
  return index.find(scope, name ?? "");
}

/** Nodes in a row that a number is followed through. */
const maxSteps = 4;

/** The value that nodes make another type or shape of. */
function skipCasts(lookup: Lookup, name: string): GraphValue | undefined {
  let value = find(lookup, name);
  for (let steps = 0; steps < maxSteps; steps++) {
    const { producer } = value ?? {};
    const operator = producer === undefined ? "" : operatorName(producer);
    if (operator !== "Cast" && operator !== "Unsqueeze") return value;
    value = find(lookup, producer?.input[0]);
  }
  return undefined;
}

/** The only element of a constant. */
function readInteger(lookup: Lookup, name: string | undefined): bigint | undefined {
  const tensor = find(lookup, name)?.constant;
  if (tensor === undefined || elementCount(tensor.dims) !== 1) return undefined;
  const bytes = readTensor(lookup.model, tensor).slice().buffer;
  if (tensor.dataType === DataType.INT64) return new BigInt64Array(bytes)[0];
  return tensor.dataType === DataType.INT32 ? BigInt(new Int32Array(bytes)[0] ?? 0) : undefined;
}
