import { at } from "../../onnx/at.ts";
import { elementTypeName } from "../../onnx/element-type.ts";
import { findAttribute } from "../../onnx/node-attributes.ts";
import { type NodeProto, TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { findPayload } from "../../onnx/payload.ts";
import { readTensor } from "../../onnx/read-tensor.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import { quoteName } from "../../../contract/text/quote-name.ts";
import { channelAxis, operatorName } from "../channel-axis.ts";
import { clippers, type Dialect, integerOperators, movers } from "../dialects.ts";
import { findSource, hasAllCodes } from "./multiply-static.ts";
import { findJoint } from "../join-additions.ts";
import { GraphIndex, type GraphValue, type Scope } from "../graph-index.ts";

/** A node around which values are quantized to no use, and why. */
interface Unfused {
  readonly node: string;
  readonly operator: string;
  /** The operator starts the sentence. */
  readonly reason: string;
}

export interface QdqFindings {
  readonly runtime: string;
  /** How many operators the runtime computes in integers. */
  readonly operators: number;
  readonly unfused: readonly Unfused[];
}

/**
 * Looks through a finished model for QuantizeLinear and DequantizeLinear that the runtime of a dialect
 * would run by themselves, in place of making them a part of an operator in integers.
 */
export function findUnfused(model: OnnxModel, dialect: Dialect): QdqFindings {
  const { graph } = model.proto;
  const { runtime } = dialect;
  if (graph === undefined) return { runtime, operators: 0, unfused: [] };
  const index = new GraphIndex(model.proto);
  const scope = { body: graph, outer: undefined };
  const lint: Lint = { model, dialect, index, scope };
  const products = graph.node.filter((node) => hasStoredWeight(lint, node));
  const unfused = products.flatMap((node) => describe(node, explainProduct(lint, node)));
  const operators = products.length - unfused.length;
  for (const node of graph.node) {
    if (node.opType !== "QuantizeLinear") continue;
    unfused.push(...explainMove(lint, node), ...describe(node, explainUseless(lint, node)));
  }
  return { runtime, operators, unfused };
}

interface Lint {
  readonly model: OnnxModel;
  readonly dialect: Dialect;
  readonly index: GraphIndex;
  readonly scope: Scope;
}

function describe(node: NodeProto, reason: string | undefined): Unfused[] {
  const name = node.name === "" ? (node.output[0] ?? "") : node.name;
  return reason === undefined ? [] : [{ node: name, operator: operatorName(node), reason }];
}

function find({ index, scope }: Lint, name: string | undefined): GraphValue | undefined {
  return name === undefined || name === "" ? undefined : index.find(scope, name);
}

/** The DequantizeLinear that gives a value. */
function findRestoring(lint: Lint, name: string | undefined): NodeProto | undefined {
  const producer = find(lint, name)?.producer;
  return producer?.opType === "DequantizeLinear" ? producer : undefined;
}

/** Whether an operator takes a constant weight from 8-bit codes. */
function hasStoredWeight(lint: Lint, node: NodeProto): boolean {
  if (!integerOperators.has(operatorName(node))) return false;
  const codes = findWeight(lint, node)?.codes.dataType;
  return codes === DataType.INT8 || codes === DataType.UINT8;
}

function findWeight(lint: Lint, node: NodeProto) {
  const restoring = findRestoring(lint, node.input[1]);
  const codes = find(lint, restoring?.input[0])?.constant;
  return restoring === undefined || codes === undefined ? undefined : { restoring, codes };
}

/** Why an operator is not computed in integers. */
function explainProduct(lint: Lint, node: NodeProto): string | undefined {
  return (
    explainData(lint, node) ??
    explainWeight(lint, node) ??
    explainResult(lint, node) ??
    explainBias(lint, node) ??
    explainJoint(lint, node)
  );
}

/** The DequantizeLinear of an operator's data, also in front of nodes that only move elements. */
function findData({ index, scope, ...lint }: Lint, node: NodeProto): NodeProto | undefined {
  return findRestoring({ index, scope, ...lint }, findSource(index, scope, at(node.input, 0)));
}

function explainData(lint: Lint, node: NodeProto): string | undefined {
  const { runtime, activations } = lint.dialect;
  const name = quoteName(at(node.input, 0));
  const restoring = findData(lint, node);
  if (restoring === undefined) return `takes ${name} in floating point`;
  const scales = countScales(lint, restoring);
  if (scales > 1) return `takes ${name} with ${scales} scales, and ${runtime} activations with one`;
  const type = findCodeType(lint, restoring);
  if (!activations.some((codes) => codes === type)) {
    return `takes ${name} in ${type}, and ${runtime} activations in ${activations.join(" or ")}`;
  }
  return lint.dialect.isSymmetric ? explainZeroPoints(lint, name, restoring) : undefined;
}

function explainZeroPoints(lint: Lint, name: string, restoring: NodeProto): string | undefined {
  const tensor = find(lint, restoring.input[2])?.constant;
  // Weights that are still to be computed have zero points only where some are not 0.
  const isZero =
    tensor === undefined ||
    (findPayload(lint.model, tensor)?.kind !== "computed" &&
      readTensor(lint.model, tensor).every((byte) => byte === 0));
  return isZero
    ? undefined
    : `takes ${name} with zero points, and ${lint.dialect.runtime} has none`;
}

function explainWeight(lint: Lint, node: NodeProto): string | undefined {
  const { runtime, isSymmetric, channelScales, writtenZeroPoints } = lint.dialect;
  const weight = findWeight(lint, node);
  if (weight === undefined) throw new TypeError("An operator without a stored weight was linted");
  const { restoring, codes } = weight;
  const name = quoteName(at(node.input, 1));
  const operator = operatorName(node);
  if (countScales(lint, restoring) > 1) {
    if (!channelScales.has(operator)) {
      return `takes ${name} with a scale for each output, which not every ${runtime} has for ${operator}`;
    }
    const axis = Number(findAttribute(restoring, "axis")?.i ?? 1n);
    const expected = channelAxis({ node, input: 1, scope: lint.scope }, codes.dims.length);
    if (axis !== expected) return `takes ${name} with scales along axis ${axis}, not ${expected}`;
  }
  if (writtenZeroPoints.has(operator) && find(lint, restoring.input[2]) === undefined) {
    return `takes ${name} without zero points, which ${runtime} needs for ${operator}`;
  }
  if (!isSymmetric) return undefined;
  if (codes.dataType !== DataType.INT8) {
    return `takes ${name} in ${elementTypeName(codes.dataType)}, and ${runtime} weights in int8`;
  }
  return explainZeroPoints(lint, name, restoring);
}

function explainBias(lint: Lint, node: NodeProto): string | undefined {
  const { runtime, biases, roundedResults } = lint.dialect;
  const value = find(lint, node.input[2]);
  if (value === undefined || biases === "either") return undefined;
  const name = quoteName(value.name);
  const restoring = findRestoring(lint, value.name);
  const codes = find(lint, restoring?.input[0])?.constant?.dataType;
  if (biases === "float32") {
    return restoring === undefined ? undefined : `adds ${name} from codes, and ${runtime} float32`;
  }
  // ONNX Runtime rounds a constant bias in front of a result that is rounded as it loads the model.
  const isRoundedAtLoad =
    roundedResults.has(operatorName(node)) && value.constant?.dims.length === 1;
  if (codes !== DataType.INT32 && !isRoundedAtLoad) return `adds ${name}, which is not int32`;
  const beta = findAttribute(node, "beta")?.f ?? 1;
  return beta === 1 ? undefined : `adds ${name} ${beta} times`;
}

/** A product of matrices that becomes a Gemm whose bias is not in integers. */
function explainJoint(lint: Lint, node: NodeProto): string | undefined {
  if (!lint.dialect.joinsAdditions) return undefined;
  const codes = find(lint, findRestoring(lint, node.input[0])?.input[0]);
  const joint = findJoint(lint, node, codes?.producer?.input[0] ?? "");
  const dims = find(lint, joint?.other)?.constant?.dims;
  const isBias = dims === undefined || dims.at(-1) === findWeight(lint, node)?.codes.dims[1];
  return joint !== undefined && isBias
    ? `is made a Gemm with ${quoteName(joint.addition.name)}, which adds no int32`
    : undefined;
}

/** The node that takes a value, where it is the only one. */
function findOnlyUser(lint: Lint, name: string | undefined): NodeProto | undefined {
  const value = find(lint, name);
  const [use, ...others] = value?.uses ?? [];
  return others.length > 0 || value?.isOutput === true ? undefined : use?.node;
}

/** The QuantizeLinear of a result, and the Relu or Clip before it. */
function findRounding(lint: Lint, node: NodeProto) {
  const user = findOnlyUser(lint, node.output[0]);
  const clipper = user !== undefined && clippers.has(operatorName(user)) ? user : undefined;
  const last = clipper === undefined ? user : findOnlyUser(lint, at(clipper.output, 0));
  return { clipper, rounding: last?.opType === "QuantizeLinear" ? last : undefined };
}

function explainResult(lint: Lint, node: NodeProto): string | undefined {
  const { runtime, roundedResults } = lint.dialect;
  const operator = operatorName(node);
  if (!roundedResults.has(operator)) return undefined;
  const { clipper, rounding } = findRounding(lint, node);
  if (rounding === undefined) {
    const result = quoteName(at(node.output, 0));
    return `gives ${result} in floating point, and ${runtime} rounds what ${operator} gives`;
  }
  const data = findData(lint, node);
  const [taken, given] = [data, rounding].map((each) => each && findCodeType(lint, each));
  if (taken !== given) return `takes ${taken} and gives ${given}`;
  if (clipper === undefined || isPartOf(lint, clipper, rounding)) return undefined;
  return `gives codes beyond the limits of ${quoteName(clipper.name)}`;
}

/** Whether the codes have nothing outside the limits of a Relu or Clip before them. */
function isPartOf(lint: Lint, clipper: NodeProto, rounding: NodeProto): boolean {
  const lowest = findCodeType(lint, rounding) === "int8" ? -128 : 0;
  const [scale, zeroPoint] = [
    readNumber(lint, rounding.input[1]),
    readNumber(lint, rounding.input[2]),
  ];
  if (operatorName(clipper) === "Relu") return zeroPoint === lowest;
  const [low, high] = (["min", "max"] as const).map((name, position) => {
    const none = name === "min" ? -Infinity : Infinity;
    const limit = clipper.input[position + 1] ?? "";
    return limit === "" ? (findAttribute(clipper, name)?.f ?? none) : readNumber(lint, limit);
  });
  return hasAllCodes({ low, high }, { scale, zeroPoint, lowest });
}

/** Why nodes that only move elements cannot move codes: they are rounded again by another scale. */
function explainMove(lint: Lint, rounding: NodeProto): Unfused[] {
  const value = rounding.input[0] ?? "";
  const source = findSource(lint.index, lint.scope, value);
  const restoring = source === value ? undefined : findRestoring(lint, source);
  const mover = find(lint, value)?.producer;
  if (restoring === undefined || mover === undefined) return [];
  const parameters = (node: NodeProto) =>
    [findCodeType(lint, node), ...node.input.slice(1).map((name) => readNumber(lint, name))].join();
  if (parameters(restoring) === parameters(rounding)) return [];
  return describe(mover, `moves ${quoteName(source)}, which is rounded by another scale after it`);
}

/** Why a value is rounded to no use: it comes from floating point, and goes there. */
function explainUseless(lint: Lint, { input: [value = ""], output }: NodeProto) {
  const codes = find(lint, output[0]);
  const restored = codes?.uses.map(({ node }) => find(lint, node.output[0])) ?? [];
  const isTaken = restored.some(
    (each) => each?.isOutput === true || each?.uses.some(({ node }) => takesCodes(lint, node)),
  );
  const isUsed = codes?.isOutput === true || isTaken || isGivenInCodes(lint, value);
  return isUsed ? undefined : `rounds ${quoteName(value)}, which is used in floating point only`;
}

/** Whether a node may take codes, since it gives or moves some. */
function takesCodes(lint: Lint, node: NodeProto): boolean {
  const operator = operatorName(node);
  if (integerOperators.has(operator) || movers.has(operator)) return true;
  const uses = find(lint, node.output[0])?.uses ?? [];
  const isRounded = uses.some((use) => use.node.opType === "QuantizeLinear");
  return isRounded || findRounding(lint, node).rounding !== undefined;
}

/** Whether the node that gives a value may give codes, since it takes some. */
function isGivenInCodes(lint: Lint, value: string): boolean {
  const last = find(lint, value)?.producer;
  const isClipped = last !== undefined && clippers.has(operatorName(last));
  const nodes = isClipped ? [last, find(lint, last.input[0])?.producer] : [last];
  return nodes.some((node) => node?.input.some((name) => findRestoring(lint, name) !== undefined));
}

/** Type of the codes of a QuantizeLinear or DequantizeLinear. */
function findCodeType(lint: Lint, node: NodeProto): string {
  const [data, , zeroPoint] = node.input.map((name) => find(lint, name)?.constant);
  return elementTypeName(zeroPoint?.dataType ?? data?.dataType ?? DataType.UINT8);
}

function countScales(lint: Lint, node: NodeProto): number {
  const dims = find(lint, node.input[1])?.constant?.dims ?? [];
  return countElements(dims.map(Number));
}

/** A constant number of a QuantizeLinear, DequantizeLinear or Clip; NaN for what is computed. */
function readNumber(lint: Lint, name: string | undefined): number {
  const tensor = find(lint, name)?.constant;
  if (tensor === undefined) return name === undefined || name === "" ? 0 : NaN;
  const bytes = readTensor(lint.model, tensor).slice();
  if (tensor.dataType === DataType.FLOAT) return new Float32Array(bytes.buffer)[0] ?? NaN;
  if (tensor.dataType === DataType.INT8) return new Int8Array(bytes.buffer)[0] ?? NaN;
  return tensor.dataType === DataType.UINT8 ? (bytes[0] ?? NaN) : NaN;
}
