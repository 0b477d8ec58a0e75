import { create } from "@bufbuild/protobuf";
import { at } from "../../onnx/at.ts";
import {
  type NodeProto,
  type TensorProto,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
} from "../../onnx/onnx_pb.js";
import { readTensor } from "../../onnx/read-tensor.ts";
import { operatorName } from "../channel-axis.ts";
import type { GraphIndex, GraphValue, Scope } from "../graph-index.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import type { WeightPlan } from "../weight-plan.ts";

/** A constant vector that a value is multiplied by, or that is added to it. */
interface ChannelConstant {
  readonly node: NodeProto;
  readonly input: number;
  readonly value: GraphValue;
  readonly tensor: TensorProto;
}

/** Inputs that are the scale and the offset of what a normalization gives first. */
const normalizations: ReadonlyMap<string, readonly number[]> = new Map([
  ["LayerNormalization", [1, 2]],
  ["RMSNormalization", [1]],
  ["SimplifiedLayerNormalization", [1]],
  ["com.microsoft:SkipLayerNormalization", [2, 3]],
  ["com.microsoft:SkipSimplifiedLayerNormalization", [2]],
]);

/** Longest vector that is read. */
const maxChannels = 256 * 1024;

/**
 * The scale of each channel at the end of a normalization, and the offset that follows; undefined
 * for a value that comes from elsewhere.
 */
export function findChannelConstants(
  index: GraphIndex,
  scope: Scope,
  { name, channels }: { readonly name: string; readonly channels: number },
): readonly ChannelConstant[] | undefined {
  const node = index.find(scope, name)?.producer;
  if (node?.output[0] !== name || channels > maxChannels) return undefined;
  const inputs = normalizations.get(operatorName(node));
  if (inputs === undefined) return findLastSteps(index, scope, { node, channels });
  const given = inputs.filter((input) => (node.input[input] ?? "") !== "");
  const constants = given.flatMap((input) => findVector(index, scope, { node, input, channels }));
  return constants.length === given.length ? constants : undefined;
}

/** Of a normalization of several nodes, which ends in a Mul, or in a Mul and an Add. */
function findLastSteps(
  index: GraphIndex,
  scope: Scope,
  { node, channels }: { readonly node: NodeProto; readonly channels: number },
): readonly ChannelConstant[] | undefined {
  const operator = operatorName(node);
  if (operator !== "Mul" && operator !== "Add") return undefined;
  const [own, ...others] = [0, 1].flatMap((input) =>
    findVector(index, scope, { node, input, channels }),
  );
  if (own === undefined || others.length > 0) return undefined;
  if (operator === "Mul") return [own];
  const producer = index.find(scope, at(node.input, 1 - own.input))?.producer;
  if (producer === undefined || operatorName(producer) !== "Mul") return undefined;
  const scales = findLastSteps(index, scope, { node: producer, channels });
  return scales && [...scales, own];
}

function findVector(
  index: GraphIndex,
  scope: Scope,
  {
    node,
    input,
    channels,
  }: { readonly node: NodeProto; readonly input: number; readonly channels: number },
): ChannelConstant[] {
  const value = index.find(scope, node.input[input] ?? "");
  const tensor = value?.constant;
  const isVector =
    tensor?.dataType === DataType.FLOAT &&
    Number(tensor.dims.at(-1)) === channels &&
    tensor.dims.slice(0, -1).every((size) => size === 1n);
  return value !== undefined && isVector ? [{ node, input, value, tensor }] : [];
}

/**
 * Divides the inputs of smoothed products by the scales of their channels: in the constants of the
 * normalization before where nothing else takes what it gives, else by a Mul beside it, since
 * runtimes fuse the nodes of a normalization only where none but the last has other users.
 */
export function divideInputs(rewrite: GraphRewrite, plans: readonly WeightPlan[]): void {
  const inputs = new Map<string, DividedInput>();
  for (const { weight, format } of plans) {
    if (format === undefined || !("inputScales" in format.storage)) continue;
    const { scales } = format.storage.inputScales;
    for (const { node, scope } of weight.consumers) {
      const name = at(node.input, 0);
      const input = inputs.get(name) ?? { name, scope, scales, products: new Set() };
      inputs.set(name, input);
      input.products.add(node);
    }
  }
  for (const input of inputs.values()) {
    const constants = findOwnConstants(rewrite.index, input);
    if (constants === undefined) addDivision(rewrite, input);
    else divideConstants(rewrite, input, constants);
  }
}

interface DividedInput {
  readonly name: string;
  readonly scope: Scope;
  readonly scales: readonly number[];
  readonly products: Set<NodeProto>;
}

/** The constants of a normalization that only these products take; undefined where others do too. */
function findOwnConstants(
  index: GraphIndex,
  { name, scope, scales, products }: DividedInput,
): readonly ChannelConstant[] | undefined {
  const value = index.find(scope, name);
  const isOwn = value?.uses.every(({ node, input }) => input === 0 && products.has(node));
  if (value === undefined || isOwn !== true || value.isOutput) return undefined;
  const constants = findChannelConstants(index, scope, { name, channels: scales.length });
  const isBetweenOwn = constants?.every(({ node }) => {
    const result = index.find(scope, at(node.output, 0));
    return result === value || (result?.uses.length === 1 && !result.isOutput);
  });
  return isBetweenOwn === true ? constants : undefined;
}

function divideConstants(
  rewrite: GraphRewrite,
  { name: input, scope, scales }: DividedInput,
  constants: readonly ChannelConstant[],
): void {
  rewrite.smoothedInputs.set(input, input);
  for (const [node, group] of Map.groupBy(constants, (constant) => constant.node)) {
    const names = [...node.input];
    for (const { input: position, value, tensor } of group) {
      const numbers = new Float32Array(
        readTensor(rewrite.model, tensor, maxChannels * 4).slice().buffer,
      );
      const divided = numbers.map((number, channel) => number / at(scales, channel));
      const { name, producer: constantNode, uses, isOutput, scope: owner } = value;
      const result = floatTensor(rewrite.names.allocate(`${name}_smoothed`), tensor.dims, divided);
      rewrite.addConstantTensor(scope.body, result);
      names[position] = result.name;
      if (uses.length > 1 || isOutput) rewrite.makeConstant(owner, name);
      else rewrite.removeWeight({ name, scope: owner, tensor, constantNode });
    }
    rewrite.replaceWithCopy(node, { before: [], changes: { input: names }, after: [] });
  }
}

function addDivision(rewrite: GraphRewrite, { name, scope, scales }: DividedInput): void {
  const reciprocals = Float32Array.from(scales, (scale) => 1 / scale);
  const dims = [BigInt(scales.length)];
  const factors = floatTensor(rewrite.names.allocate(`${name}_factors`), dims, reciprocals);
  rewrite.addConstantTensor(scope.body, factors);
  const result = rewrite.names.allocate(`${name}_smoothed`);
  rewrite.smoothedInputs.set(name, result);
  rewrite.prependNode(scope.body, { opType: "Mul", input: [name, factors.name], output: [result] });
}

function floatTensor(name: string, dims: readonly bigint[], numbers: Float32Array): TensorProto {
  const rawData = new Uint8Array(numbers.buffer);
  return create(TensorProtoSchema, { name, dims: [...dims], dataType: DataType.FLOAT, rawData });
}
