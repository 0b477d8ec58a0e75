import { create } from "@bufbuild/protobuf";
import { at } from "../../onnx/at.ts";
import {
  type NodeProto,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
} from "../../onnx/onnx_pb.js";
import { operatorName } from "../channel-axis.ts";
import type { WeightConsumer } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription } from "../graph-rewrite.ts";
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
  if (batchAxes > 0) return new Obstacle("is a batch of matrices");
  const mover = view.nodes.find((each) => each.node.opType !== "Identity");
  if (mover !== undefined) {
    return new Obstacle(`is moved by ${mover.node.opType} before its product`);
  }
  if (operatorName(node) === "Conv" && input === 1) return undefined;
  const matrix = findReplaceableProduct(consumer);
  return matrix instanceof Obstacle ? matrix : undefined;
}

/**
 * The values whose ranges the operator needs. Runtimes compute a convolution in integers only
 * where its result is quantized too; products of matrices may give floating point.
 */
export function listStaticValues(node: NodeProto): string[] {
  const [data] = node.input;
  return [data, ...(isConvolution(node) ? node.output : [])].filter((name) => name !== undefined);
}

function isConvolution(node: NodeProto): boolean {
  return operatorName(node) === "Conv";
}

/** Puts QuantizeLinear and DequantizeLinear around an operator, whose weight is dequantized. */
export function multiplyStatic({ rewrite }: StoredWeight, { node }: WeightConsumer): void {
  const before: NodeDescription[] = [];
  const after: NodeDescription[] = [];
  const data = at(node.input, 0);
  const input = [restoreRounded(rewrite, data, before), ...node.input.slice(1)];
  const [result = ""] = node.output;
  const output = isConvolution(node) ? [rewrite.names.allocate(`${result}_exact`)] : node.output;
  if (isConvolution(node)) {
    addPair(rewrite, { value: result, source: at(output, 0), restored: result }, after);
    rewrite.roundedActivations.set(result, result);
  }
  rewrite.replaceWithCopy(node, { before, changes: { input, output }, after });
}

/** The rounded version of a value, which all its users in the graph share. */
function restoreRounded(rewrite: GraphRewrite, value: string, nodes: NodeDescription[]): string {
  const known = rewrite.roundedActivations.get(value);
  if (known !== undefined) return known;
  const restored = rewrite.names.allocate(`${value}_rounded`);
  rewrite.roundedActivations.set(value, restored);
  addPair(rewrite, { value, source: value, restored }, nodes);
  return restored;
}

interface Pair {
  /** The value whose range is known. */
  readonly value: string;
  readonly source: string;
  readonly restored: string;
}

function addPair(
  rewrite: GraphRewrite,
  { value, source, restored }: Pair,
  nodes: NodeDescription[],
): void {
  const { scale, zeroPoint } = quantizeRange(rewrite.activationRanges.get(value));
  const names = ["quantized", "scale", "zero_point"].map((part) =>
    rewrite.names.allocate(`${value}_${part}`),
  );
  const [codes = "", scaleName = "", zeroPointName = ""] = names;
  const { graph } = rewrite.model.proto;
  if (graph === undefined) throw new TypeError("A model without a graph was planned");
  const constants = [
    { name: scaleName, dataType: DataType.FLOAT, content: Float32Array.of(scale) },
    { name: zeroPointName, dataType: DataType.UINT8, content: Uint8Array.of(zeroPoint) },
  ];
  for (const { content, ...tensor } of constants) {
    const rawData = new Uint8Array(content.buffer);
    rewrite.addConstantTensor(graph, create(TensorProtoSchema, { ...tensor, rawData }));
  }
  const parameters = [scaleName, zeroPointName];
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

/** Scale and zero point of uint8 codes for a range, which 0 is part of: it stays exact. */
export function quantizeRange(range: ActivationRange | undefined) {
  const low = Math.min(0, range?.low ?? 0);
  const high = Math.max(0, range?.high ?? lastCode);
  const scale = Math.fround((high - low) / lastCode);
  return scale === 0
    ? { scale: 1, zeroPoint: 0 }
    : { scale, zeroPoint: Math.min(lastCode, Math.max(0, Math.round(-low / scale))) };
}
