import { create } from "@bufbuild/protobuf";
import { operatorName } from "./channel-axis.ts";
import { GraphIndex, type GraphValue } from "./graph-index.ts";
import { at } from "../onnx/at.ts";
import { UniqueNames } from "../onnx/names.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import {
  type GraphProto,
  type NodeProto,
  type TensorProto,
  TensorProto_DataLocation,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";

/** Largest kernel that is read to be multiplied, bytes. */
const maxKernelBytes = 64 * 1024 ** 2;
const maxChannelBytes = 1024 ** 2;

/**
 * Folds BatchNormalization and constant Add, Sub, Mul and Div after a convolution into its weight
 * and bias, which runtimes take in int32, where nothing else uses what is between.
 */
export function foldChannelwise(model: OnnxModel, graph: GraphProto): void {
  const folding: Folding = {
    model,
    graph,
    index: new GraphIndex(model.proto),
    names: UniqueNames.forModel(model.proto),
    inputs: new Set(graph.input.map(({ name }) => name)),
    removed: new Set(),
  };
  for (const node of graph.node) if (operatorName(node) === "Conv") foldInto(node, folding);
  graph.node = graph.node.filter((node) => !folding.removed.has(node));
}

interface Folding {
  readonly model: OnnxModel;
  readonly graph: GraphProto;
  readonly index: GraphIndex;
  readonly names: UniqueNames;
  /** Constants among them are defaults, which callers may replace. */
  readonly inputs: ReadonlySet<string>;
  readonly removed: Set<NodeProto>;
}

/** What a chain of nodes makes of each channel: factor · value + offset. */
interface Affine {
  readonly factors: Float64Array;
  readonly offsets: Float64Array;
}

function foldInto(conv: NodeProto, folding: Folding): void {
  const { model, graph, names } = folding;
  const kernel = findConstant(folding, conv.input[1]);
  if (kernel?.constant === undefined) return;
  const [count = 0, ...others] = kernel.constant.dims.map(Number);
  const bias = conv.input[2] ?? "";
  const before =
    bias === "" ? new Float64Array(count) : readChannels(folding, bias, { count, inner: 0 });
  if (before === undefined) return;
  let affine: Affine = { factors: new Float64Array(count).fill(1), offsets: before };
  let last = conv;
  const isOwn = kernel.uses.length === 1 && tensorByteLength(kernel.constant) <= maxKernelBytes;
  for (let next = findNext(folding, last); next !== undefined; next = findNext(folding, last)) {
    const channels = { count, inner: others.length - 1 };
    const step = readStep(folding, { node: next, value: last.output[0] }, channels);
    if (step === undefined) break;
    const { factors, offsets } = step;
    if (!isOwn && factors.some((factor) => factor !== 1)) break;
    affine = {
      factors: affine.factors.map((factor, channel) => factor * at(factors, channel)),
      offsets: affine.offsets.map(
        (offset, channel) => offset * at(factors, channel) + at(offsets, channel),
      ),
    };
    folding.removed.add(next);
    last = next;
  }
  if (last === conv) return;
  if (affine.factors.some((factor) => factor !== 1)) {
    multiplyChannels(model, kernel.constant, affine.factors);
  }
  const name = names.allocate(`${conv.input[1]}_bias`);
  const rawData = new Uint8Array(Float32Array.from(affine.offsets).buffer);
  graph.initializer.push(
    create(TensorProtoSchema, { name, dims: [BigInt(count)], dataType: DataType.FLOAT, rawData }),
  );
  conv.input = [...conv.input.slice(0, 2), name];
  conv.output = last.output;
}

/** The only node that takes a node's result. */
function findNext({ index, graph }: Folding, node: NodeProto): NodeProto | undefined {
  const value = index.find({ body: graph, outer: undefined }, node.output[0] ?? "");
  const [use, ...others] = value?.uses ?? [];
  if (use === undefined || others.length > 0 || value?.isOutput !== false) return undefined;
  return use.scope.body === graph ? use.node : undefined;
}

function findConstant({ index, graph, inputs }: Folding, name = ""): GraphValue | undefined {
  const value = index.find({ body: graph, outer: undefined }, name);
  const isConstant = value?.constant?.dataType === DataType.FLOAT && !inputs.has(name);
  return isConstant && !value.isOutput ? value : undefined;
}

function readStep(
  folding: Folding,
  { node, value }: { node: NodeProto; value: string | undefined },
  channels: Channels,
): Affine | undefined {
  const operator = operatorName(node);
  if (operator === "BatchNormalization") return readNormalization(folding, node, value, channels);
  const isFirst = node.input[0] === value;
  const numbers = readChannels(folding, node.input[isFirst ? 1 : 0], channels);
  if (numbers === undefined) return undefined;
  const [zeros, ones] = [
    new Float64Array(numbers.length),
    new Float64Array(numbers.length).fill(1),
  ];
  if (operator === "Add") return { factors: ones, offsets: numbers };
  if (operator === "Mul") return { factors: numbers, offsets: zeros };
  if (!isFirst) return undefined;
  if (operator === "Sub") return { factors: ones, offsets: numbers.map((each) => -each) };
  if (operator === "Div") return { factors: numbers.map((each) => 1 / each), offsets: zeros };
  return undefined;
}

const defaultEpsilon = 1e-5;

function readNormalization(
  folding: Folding,
  node: NodeProto,
  value: string | undefined,
  { count }: Channels,
): Affine | undefined {
  const isInference =
    node.input[0] === value &&
    node.output.slice(1).every((name) => name === "") &&
    (findAttribute(node, "training_mode")?.i ?? 0n) === 0n;
  const vectors = node.input
    .slice(1)
    .map((name) => readChannels(folding, name, { count, inner: 0 }));
  const [scale, bias, mean, variance] = vectors;
  if (!isInference || !scale || !bias || !mean || !variance) return undefined;
  const epsilon = findAttribute(node, "epsilon")?.f ?? defaultEpsilon;
  const factors = scale.map((each, channel) => each / Math.sqrt(at(variance, channel) + epsilon));
  const offsets = bias.map((each, channel) => each - at(mean, channel) * at(factors, channel));
  return { factors, offsets };
}

interface Channels {
  readonly count: number;
  /** Axes behind the one of the channels. */
  readonly inner: number;
}

/** A constant that has a number for each channel, or one for all. */
function readChannels(
  folding: Folding,
  name: string | undefined,
  { count, inner }: Channels,
): Float64Array | undefined {
  const tensor = findConstant(folding, name)?.constant;
  if (tensor === undefined || tensorByteLength(tensor) > maxChannelBytes) return undefined;
  const dims = tensor.dims.map(Number);
  const axis = dims.length - 1 - inner;
  const isOne = dims.every((size) => size === 1) && axis <= 1;
  const isVector = axis >= 0 && dims.every((size, each) => size === (each === axis ? count : 1));
  if (!isOne && !(isVector && axis <= 1)) return undefined;
  const bytes = readTensor(folding.model, tensor, maxChannelBytes);
  const numbers = new Float32Array(bytes.slice().buffer);
  return isOne ? new Float64Array(count).fill(at(numbers, 0)) : Float64Array.from(numbers);
}

/** Multiplies a kernel in place, so that it keeps its name. */
function multiplyChannels(model: OnnxModel, kernel: TensorProto, factors: Float64Array): void {
  const bytes = readTensor(model, kernel, maxKernelBytes);
  const numbers = new Float32Array(bytes.slice().buffer);
  const inner = numbers.length / factors.length;
  for (const [channel, factor] of factors.entries()) {
    for (let each = channel * inner; each < (channel + 1) * inner; each++) {
      numbers[each] = at(numbers, each) * factor;
    }
  }
  kernel.externalData = [];
  kernel.dataLocation = TensorProto_DataLocation.DEFAULT;
  kernel.floatData = [];
  kernel.rawData = new Uint8Array(numbers.buffer);
}
