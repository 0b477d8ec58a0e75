import { findAttribute } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";

/** Shape of a value or parameter; undefined where it is not known. */
type ShapeOf = (name: string) => readonly number[] | undefined;

interface Operands {
  node: NodeProto;
  inputs: (readonly number[] | undefined)[];
  output: readonly number[];
}

/** Operations of the operators whose cost is not one for each element of their outputs; a multiplication with its addition counts as two. */
const operations: Record<string, (operands: Operands) => number> = {
  MatMul: matrixProduct,
  MatMulInteger: matrixProduct,
  DynamicQuantizeMatMul: matrixProduct,
  MatMulIntegerToFloat: matrixProduct,
  QLinearMatMul: matrixProduct,
  Gemm: ({ node, inputs: [a], output }) => 2 * count(output) * (a?.[intOf(node, "transA", 0) === 1 ? 0 : 1] ?? 1),
  MatMulNBits: ({ node, output }) => 2 * count(output) * intOf(node, "K", 1),
  Conv: ({ inputs: [, weight], output }) => convolution(weight, output),
  ConvInteger: ({ inputs: [, weight], output }) => convolution(weight, output),
  QLinearConv: ({ inputs: [, , , weight], output }) => convolution(weight, output),
  ConvTranspose: ({ inputs: [input = [], weight = []] }) => 2 * count(input) * count(weight.slice(1)),
  LSTM: recurrent,
  GRU: recurrent,
  RNN: recurrent,
  DynamicQuantizeLSTM: recurrent,
};

/**
 * Floating-point or integer operations of a node on values of the given shapes. Operators that hold subgraphs or are functions of the
 * model count two for each element of what they use, since what they run is not known before they run.
 */
export function countFlops(node: NodeProto, shapeOf: ShapeOf, parameterElements: number): number {
  const output = node.output.reduce((total, name) => total + count(shapeOf(name) ?? []), 0);
  const operation = operations[node.opType];
  const [first] = node.output;
  if (!operation) return output + 2 * parameterElements;
  const inputs = node.input.map((name) => shapeOf(name));
  return operation({ node, inputs, output: shapeOf(first ?? "") ?? [] });
}

function matrixProduct({ inputs: [a], output }: Operands): number {
  return 2 * count(output) * (a?.at(-1) ?? 1);
}

function convolution(weight: readonly number[] | undefined, output: readonly number[]): number {
  return 2 * count(output) * count(weight?.slice(1) ?? []);
}

/** Each step multiplies its input by W [directions, gates, inputs] and its state by R [directions, gates, hidden]. */
function recurrent({ inputs: [x = [], w = [], r = []] }: Operands): number {
  const [length = 1, batch = 1] = x;
  return 2 * length * batch * (count(w) + count(r));
}

function count(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function intOf(node: NodeProto, name: string, absent: number): number {
  const attribute = findAttribute(node, name);
  return attribute ? Number(attribute.i) : absent;
}
