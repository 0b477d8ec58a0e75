import { create } from "@bufbuild/protobuf";
import { at } from "../../onnx/at.ts";
import {
  type NodeProto,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
} from "../../onnx/onnx_pb.js";
import { readTensor } from "../../onnx/read-tensor.ts";
import { operatorName } from "../channel-axis.ts";
import type { WeightConsumer } from "../find-weights.ts";
import type { GraphIndex, Scope } from "../graph-index.ts";
import type { GraphRewrite, NodeDescription } from "../graph-rewrite.ts";
import { type ActivationCodes, clippers, type Dialect, movers } from "../dialects.ts";
import { roundHalfToEven } from "../kernels/affine-parameters.ts";
import { Obstacle } from "../obstacle.ts";
import type { ActivationRange } from "../plan-revision.ts";
import type { AffineStorage, WeightFormat } from "../weight-format.ts";
import { findReplaceableProduct } from "./consumer-matrix.ts";
import type { StoredWeight } from "./stored-weight.ts";

/** Why an operator cannot take a weight and activations that are quantized in advance. */
export function findStaticObstacle(
  consumer: WeightConsumer,
  { batchAxes }: AffineStorage,
): Obstacle | undefined {
  const { node, input, scope, view } = consumer;
  if (view.elementType !== DataType.FLOAT) {
    return new Obstacle("is not float32, the only type of statically quantized inputs");
  }
  if (scope.outer !== undefined) return new Obstacle("is used in a subgraph");
  if (scope.body.$typeName !== "onnx.GraphProto") return new Obstacle("is used in a function");
  if (batchAxes > 0) return new Obstacle("is a batch of matrices");
  const mover = view.nodes.find((each) => each.node.opType !== "Identity");
  if (mover !== undefined) {
    return new Obstacle(`is moved by ${mover.node.opType} before its product`);
  }
  if (isConvolution(node) && input === 1) return undefined;
  const matrix = findReplaceableProduct(consumer);
  return matrix instanceof Obstacle ? matrix : undefined;
}

/**
 * The values that are observed for the operator: its data, and its result where the runtime has that
 * rounded too; a convolution's always, whose elements say how much it multiplies.
 */
export function listStaticValues(
  index: GraphIndex,
  consumer: WeightConsumer,
  { roundedResults }: Dialect,
): string[] {
  const { node, scope } = consumer;
  const data = findSource(index, scope, at(node.input, 0));
  const hasResult = isConvolution(node) || roundedResults.has(operatorName(node));
  return hasResult ? [data, findResult(index, consumer).value] : [data];
}

export function isConvolution(node: NodeProto): boolean {
  return operatorName(node) === "Conv";
}

/** The value whose codes a value has: runtimes move codes only where the scales are the same. */
export function findSource(index: GraphIndex, scope: Scope, name: string): string {
  let source = name;
  for (let steps = 0; steps < maxMoves; steps++) {
    const producer = index.find(scope, source)?.producer;
    if (producer === undefined || !movers.has(operatorName(producer))) return source;
    source = at(producer.input, 0);
  }
  return source;
}

/** Nodes in a row that a value is followed through. */
const maxMoves = 16;

/** What is rounded of a result: the value after its activation, where it has one. */
function findResult(index: GraphIndex, { node, scope }: WeightConsumer) {
  const own = at(node.output, 0);
  const value = index.find(scope, own);
  const [use, ...others] = value?.uses ?? [];
  const isAlone = others.length === 0 && value?.isOutput === false;
  if (use?.scope.body !== scope.body || !isAlone || !clippers.has(operatorName(use.node))) {
    return { value: own, activation: undefined };
  }
  return { value: at(use.node.output, 0), activation: use.node };
}

/** Puts QuantizeLinear and DequantizeLinear around an operator, whose weight is dequantized. */
export function multiplyStatic(
  { rewrite, bias }: StoredWeight,
  consumer: WeightConsumer,
  storage: AffineStorage,
): void {
  const {
    activations: [codes],
    roundedResults,
  } = requireDialect(storage);
  const { node, scope } = consumer;
  const before: NodeDescription[] = [];
  const rounding = { rewrite, codes };
  const data = restoreRounded(rounding, scope, at(node.input, 0), before);
  const input = [data, ...node.input.slice(1)];
  if (bias !== undefined) input[2] = bias;
  if (!roundedResults.has(operatorName(node))) {
    rewrite.replaceWithCopy(node, { before, changes: { input }, after: [] });
    return;
  }
  const { value, activation } = findResult(rewrite.index, consumer);
  const source = rewrite.names.allocate(`${value}_exact`);
  const after: NodeDescription[] = [];
  const parameters = addParameters(rounding, value);
  addPair(rewrite, { parameters, value, source, restored: value }, after);
  rewrite.roundedActivations.set(value, value);
  const isClipped = activation !== undefined && clipsCodes(rounding, scope, { activation, value });
  if (activation === undefined || isClipped) {
    rewrite.replaceWithCopy(node, { before, changes: { input, output: [source] }, after });
    if (activation !== undefined) rewrite.removeNode(activation);
    return;
  }
  rewrite.replaceWithCopy(node, { before, changes: { input }, after: [] });
  rewrite.replaceWithCopy(activation, { before: [], changes: { output: [source] }, after });
}

/**
 * Whether rounding by itself leaves what a Clip does: ONNX Runtime 1.30 makes an invalid graph of some
 * that it takes for a part of it (`qdq_util.cc`, `IsClipMadeRedundantByQ`).
 */
function clipsCodes(
  { rewrite, codes }: Rounding,
  scope: Scope,
  { activation, value }: { readonly activation: NodeProto; readonly value: string },
): boolean {
  if (operatorName(activation) !== "Clip") return false;
  const { scale, zeroPoint } = quantizeRange(rewrite.activationRanges.get(value), codes);
  const inputs = new Set(rewrite.model.proto.graph?.input.map(({ name }) => name));
  const [low, high] = [-Infinity, Infinity].map((none, position) => {
    const name = activation.input[position + 1] ?? "";
    if (name === "") return none;
    const tensor = rewrite.index.find(scope, name)?.constant;
    if (tensor?.dataType !== DataType.FLOAT || inputs.has(name)) return NaN;
    return new Float32Array(readTensor(rewrite.model, tensor).slice().buffer)[0] ?? NaN;
  });
  return hasAllCodes({ low, high }, { scale, zeroPoint, lowest: lowestCodes[codes] });
}

const lowestCodes = { uint8: 0, int8: -128 } as const;

/** Whether limits of numbers leave all codes as they are. */
export function hasAllCodes(
  {
    low = NaN,
    high = NaN,
  }: { readonly low?: number | undefined; readonly high?: number | undefined },
  { scale, zeroPoint, lowest }: Record<"scale" | "zeroPoint" | "lowest", number>,
): boolean {
  const code = (limit: number) => roundHalfToEven(Math.fround(limit / scale)) + zeroPoint;
  return code(low) <= lowest && code(high) >= lowest + lastCode;
}

/** The dialect of a weight that operators take with activations rounded in advance. */
export function requireDialect({ dialect }: AffineStorage): Dialect {
  if (dialect === undefined) throw new TypeError("A static weight has no dialect");
  return dialect;
}

interface Rounding {
  readonly rewrite: GraphRewrite;
  readonly codes: ActivationCodes;
}

/** The rounded version of a value, which all its users in the graph share. */
function restoreRounded(
  rounding: Rounding,
  scope: Scope,
  value: string,
  nodes: NodeDescription[],
): string {
  const { rewrite } = rounding;
  const known = rewrite.roundedActivations.get(value);
  if (known !== undefined) return known;
  const restored = rewrite.names.allocate(`${value}_rounded`);
  rewrite.roundedActivations.set(value, restored);
  const parameters = addParameters(rounding, findSource(rewrite.index, scope, value));
  addPair(rewrite, { parameters, value, source: value, restored }, nodes);
  return restored;
}

/** Names of the scale and the zero point of a value whose range is known. */
function addParameters({ rewrite, codes }: Rounding, value: string): readonly string[] {
  const known = rewrite.activationParameters.get(value);
  if (known !== undefined) return known;
  const { scale, zeroPoint } = quantizeRange(rewrite.activationRanges.get(value), codes);
  const name = addConstant(rewrite, `${value}_scale`, DataType.FLOAT, Float32Array.of(scale));
  const names = [name, addZeroPoint(rewrite, codes, zeroPoint)];
  rewrite.activationParameters.set(value, names);
  return names;
}

/** The zero point of codes, which all values with the same one share. */
function addZeroPoint(rewrite: GraphRewrite, codes: ActivationCodes, zeroPoint: number): string {
  const key = `${codes} ${zeroPoint}`;
  const known = rewrite.zeroPoints.get(key);
  if (known !== undefined) return known;
  const name = `zero_point_${zeroPoint}`;
  const added = addConstant(rewrite, name, codeTypes[codes], Uint8Array.of(zeroPoint));
  rewrite.zeroPoints.set(key, added);
  return added;
}

function addConstant(
  rewrite: GraphRewrite,
  wanted: string,
  dataType: DataType,
  content: Float32Array | Uint8Array,
): string {
  const { graph } = rewrite.model.proto;
  if (graph === undefined) throw new TypeError("A model without a graph was planned");
  const name = rewrite.names.allocate(wanted);
  const rawData = Uint8Array.from(new Uint8Array(content.buffer));
  rewrite.addConstantTensor(graph, create(TensorProtoSchema, { name, dataType, rawData }));
  return name;
}

const codeTypes = { uint8: DataType.UINT8, int8: DataType.INT8 } as const;

interface Pair {
  readonly parameters: readonly string[];
  readonly value: string;
  readonly source: string;
  readonly restored: string;
}

function addPair(
  rewrite: GraphRewrite,
  { parameters, value, source, restored }: Pair,
  nodes: NodeDescription[],
): void {
  const codes = rewrite.names.allocate(`${value}_quantized`);
  nodes.push(
    { opType: "QuantizeLinear", input: [source, ...parameters], output: [codes] },
    { opType: "DequantizeLinear", input: [codes, ...parameters], output: [restored] },
  );
}

/** Whether operators take a weight with activations that are quantized in advance. */
export function isStatic(format: WeightFormat | undefined): boolean {
  return format?.operations.some((each) => each === "static-product") ?? false;
}

const lastCode = 255;
const lastPositiveCode = 127;

/**
 * Scale and zero point of the codes for a range, which 0 is part of: it stays exact. Codes of int8
 * have zero point 0.
 */
export function quantizeRange(range: ActivationRange | undefined, codes: ActivationCodes) {
  const low = Math.min(0, range?.low ?? 0);
  const high = Math.max(0, range?.high ?? lastCode);
  if (codes === "int8") {
    const scale = Math.fround(Math.max(-low, high) / lastPositiveCode);
    return { scale: scale === 0 ? 1 : scale, zeroPoint: 0 };
  }
  const scale = Math.fround((high - low) / lastCode);
  return scale === 0
    ? { scale: 1, zeroPoint: 0 }
    : { scale, zeroPoint: Math.min(lastCode, Math.max(0, Math.round(-low / scale))) };
}
