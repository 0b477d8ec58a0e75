import { countElements } from "../onnx/tensor-shape.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";

/** Shape of a value or parameter; undefined where it is not known. */
type ShapeLookup = (name: string) => readonly number[] | undefined;

interface Operands {
  node: NodeProto;
  inputs: (readonly number[] | undefined)[];
  output: readonly number[];
}

/** Operators whose cost is not one operation per output element; a multiply-add counts as two. */
const operationCounters: Record<string, (operands: Operands) => number> = {
  MatMul: countMatMulOperations,
  MatMulInteger: countMatMulOperations,
  DynamicQuantizeMatMul: countMatMulOperations,
  MatMulIntegerToFloat: countMatMulOperations,
  QLinearMatMul: countMatMulOperations,
  Gemm: ({ node, inputs: [a], output }) =>
    2 * countElements(output) * (a?.[readIntAttribute(node, "transA", 0) === 1 ? 0 : 1] ?? 1),
  MatMulNBits: ({ node, output }) => 2 * countElements(output) * readIntAttribute(node, "K", 1),
  Conv: ({ inputs: [, weight], output }) => countConvOperations(weight, output),
  ConvInteger: ({ inputs: [, weight], output }) => countConvOperations(weight, output),
  QLinearConv: ({ inputs: [, , , weight], output }) => countConvOperations(weight, output),
  ConvTranspose: ({ inputs: [input = [], weight = []] }) =>
    2 * countElements(input) * countElements(weight.slice(1)),
  LSTM: countRecurrentOperations,
  GRU: countRecurrentOperations,
  RNN: countRecurrentOperations,
  DynamicQuantizeLSTM: countRecurrentOperations,
};

/**
 * Floating-point or integer operations of a node on values of the given shapes. Operators with
 * subgraphs and functions of the model count two for each element of their parameters, since what
 * they run is not known before they run.
 */
export function countFlops(
  node: NodeProto,
  findShape: ShapeLookup,
  parameterElements: number,
): number {
  const output = node.output.reduce(
    (total, name) => total + countElements(findShape(name) ?? []),
    0,
  );
  const operation = operationCounters[node.opType];
  const [first] = node.output;
  if (!operation) return output + 2 * parameterElements;
  const inputs = node.input.map((name) => findShape(name));
  return operation({ node, inputs, output: findShape(first ?? "") ?? [] });
}

function countMatMulOperations({ inputs: [a], output }: Operands): number {
  return 2 * countElements(output) * (a?.at(-1) ?? 1);
}

function countConvOperations(
  weight: readonly number[] | undefined,
  output: readonly number[],
): number {
  return 2 * countElements(output) * countElements(weight?.slice(1) ?? []);
}

/** A step multiplies its input by W [directions, gates, inputs] and its state by R. */
function countRecurrentOperations({ inputs: [x = [], w = [], r = []] }: Operands): number {
  const [length = 1, batch = 1] = x;
  return 2 * length * batch * (countElements(w) + countElements(r));
}

function readIntAttribute(node: NodeProto, name: string, absent: number): number {
  const attribute = findAttribute(node, name);
  return attribute ? Number(attribute.i) : absent;
}
