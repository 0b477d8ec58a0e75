import { create } from "@bufbuild/protobuf";
import { operatorName } from "./channel-axis.ts";
import { findOnlyUse, GraphIndex, type GraphValue } from "./graph-index.ts";
import { matchesAny } from "./weight-patterns.ts";
import { at } from "../onnx/at.ts";
import { UniqueNames } from "../onnx/names.ts";
import { attributeText, findAttribute } from "../onnx/node-attributes.ts";
import {
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { maxPlannedBytes, readTensor, tensorByteLength } from "../onnx/read-tensor.ts";

/** Largest kernel that is read to be multiplied, bytes. */
const maxKernelBytes = 64 * 1024 ** 2;
/**
 * The largest factor of a kernel may have this size, or be as small: what is larger might overflow, in
 * half precision too, which no normalization is folded for.
 */
const maxFactor = { numbers: 2 ** 10, channels: 2 ** 40 } as const;
/**
 * Largest offset, beside inputs of about 1, that a bias gets from before a convolution, which takes
 * what is farther from 0 then: errors of its weight, and of that as it is rounded, count for more.
 */
const maxMovedOffset = 0.25;

interface FoldOptions {
  /** Patterns of weights that are not multiplied. */
  readonly exclude: readonly string[];
  /**
   * Which constants are folded: those that are one number for all channels, which ONNX Runtime
   * leaves where they are, or those of channels too, which it folds when it loads a model.
   */
  readonly constants: "numbers" | "channels";
  /** Takes the weights and biases that have other numbers then. */
  readonly changed: Set<TensorProto>;
}

/**
 * Folds BatchNormalization and constant Add, Sub, Mul and Div after a convolution into its weight
 * and bias, where nothing else uses what is between.
 */
export function foldAfterConvolutions(
  model: OnnxModel,
  graph: GraphProto,
  options: FoldOptions,
): void {
  const folding = createFolding(model, graph, options);
  for (const conv of listConvolutions(graph)) foldAfter(conv, folding);
  graph.node = graph.node.filter((node) => !folding.removed.has(node));
}

/**
 * Folds constant Add, Sub, Mul and Div of one number before a convolution into its weight and bias,
 * where nothing else uses what is between. What is added stays before a convolution that pads its
 * input with zeros, and where it is large: the factor goes into the weight then, and what is added
 * is divided by it.
 */
export function foldBeforeConvolutions(
  model: OnnxModel,
  graph: GraphProto,
  { kept, ...options }: Pick<BeforeFolding, "kept" | "exclude" | "changed">,
): void {
  const folding = { ...createFolding(model, graph, { constants: "numbers", ...options }), kept };
  const added = new Map<NodeProto, NodeProto>();
  for (const conv of listConvolutions(graph)) {
    const addition = foldBefore(conv, folding);
    if (addition !== undefined) added.set(conv, addition);
  }
  graph.node = graph.node
    .filter((node) => !folding.removed.has(node))
    .flatMap((node) => [added.get(node) ?? [], node].flat());
}

function listConvolutions(graph: GraphProto): NodeProto[] {
  return graph.node.filter((node) => operatorName(node) === "Conv");
}

function createFolding(model: OnnxModel, graph: GraphProto, options: FoldOptions): Folding {
  return {
    ...options,
    model,
    graph,
    index: new GraphIndex(model.proto),
    names: UniqueNames.forModel(model.proto),
    inputs: new Set(graph.input.map(({ name }) => name)),
    removed: new Set(),
  };
}

interface Folding extends FoldOptions {
  readonly model: OnnxModel;
  readonly graph: GraphProto;
  readonly index: GraphIndex;
  readonly names: UniqueNames;
  /** Constants among them are defaults, which callers may replace. */
  readonly inputs: ReadonlySet<string>;
  readonly removed: Set<NodeProto>;
}

interface BeforeFolding extends Folding {
  /** Nodes that stay, since they are part of what runtimes fuse. */
  readonly kept: ReadonlySet<NodeProto>;
}

/** What a chain of nodes makes of each channel: factor · value + offset. */
interface Affine {
  readonly factors: Float64Array;
  readonly offsets: Float64Array;
}

function foldAfter(conv: NodeProto, folding: Folding): void {
  const kernel = findKernel(folding, conv);
  const before = kernel && readBias(folding, conv, kernel);
  if (kernel === undefined || before === undefined) return;
  const { count, inner } = kernel;
  let affine: Affine = { factors: new Float64Array(count).fill(1), offsets: before };
  let last = conv;
  for (let next = findNext(folding, last); next !== undefined; next = findNext(folding, last)) {
    const step = readStep(folding, { node: next, value: last.output[0] }, { count, inner });
    if (step === undefined) break;
    const { factors, offsets } = step;
    if (!kernel.isOwn && factors.some((factor) => factor !== 1)) break;
    const joined = {
      factors: affine.factors.map((factor, channel) => factor * at(factors, channel)),
      offsets: affine.offsets.map(
        (offset, channel) => offset * at(factors, channel) + at(offsets, channel),
      ),
    };
    if (!isFoldable(joined.factors, folding)) break;
    affine = joined;
    folding.removed.add(next);
    last = next;
  }
  if (last === conv) return;
  multiplyKernel(folding, kernel, affine.factors);
  writeBias(folding, conv, affine.offsets);
  // A normalization may name absent outputs too.
  conv.output = [at(last.output, 0)];
}

function isFoldable(factors: Float64Array, { constants }: FoldOptions): boolean {
  const largest = factors.reduce((most, factor) => Math.max(most, Math.abs(factor)), 0);
  return largest >= 1 / maxFactor[constants] && largest <= maxFactor[constants];
}

/** @returns the node that adds before the convolution what its bias cannot */
function foldBefore(conv: NodeProto, folding: BeforeFolding): NodeProto | undefined {
  const { graph, names, removed, model } = folding;
  const kernel = findKernel(folding, conv);
  const bias = kernel && readBias(folding, conv, kernel);
  if (!kernel?.isOwn || bias === undefined) return undefined;
  const { input, factor, offset, chain } = readChain(folding, conv.input[0] ?? "", kernel);
  const factors = new Float64Array(kernel.count).fill(factor);
  const isAdded = offset !== 0 && (isPadded(conv) || Math.abs(offset) > maxMovedOffset);
  if (chain.length <= Number(isAdded) || !isFoldable(factors, folding)) return undefined;
  for (const node of chain) removed.add(node);
  if (!isAdded && offset !== 0) {
    const sums = sumChannels(model, kernel.tensor, kernel.count);
    writeBias(
      folding,
      conv,
      bias.map((each, channel) => each + offset * at(sums, channel)),
    );
  }
  multiplyKernel(folding, kernel, factors);
  if (!isAdded) {
    conv.input = [input, ...conv.input.slice(1)];
    return undefined;
  }
  const name = names.allocate(`${conv.input[1]}_offset`);
  graph.initializer.push(floatConstant(name, [], [offset / factor]));
  const output = names.allocate(`${conv.input[0]}_divided`);
  conv.input = [output, ...conv.input.slice(1)];
  const addition = { name: output, opType: "Add", input: [input, name], output: [output] };
  return create(NodeProtoSchema, addition);
}

/** Nodes that make factor · input + offset of an input, which only the last one's user takes. */
interface Chain {
  readonly input: string;
  readonly factor: number;
  readonly offset: number;
  readonly chain: readonly NodeProto[];
}

function readChain(folding: BeforeFolding, result: string, { inner }: Channels): Chain {
  const chain: NodeProto[] = [];
  let input = result;
  let [factor, offset] = [1, 0];
  for (;;) {
    const node = findPrevious(folding, input);
    const value = node?.input.find((name) => findConstant(folding, name) === undefined);
    // A constant of all axes might give a value of fewer the others.
    const step = node && readStep(folding, { node, value }, { count: 1, inner: inner - 1 });
    if (!node || !step || value === undefined || folding.kept.has(node))
      return { input, factor, offset, chain };
    offset += factor * at(step.offsets, 0);
    factor *= at(step.factors, 0);
    chain.push(node);
    input = value;
  }
}

/** Whether zeros surround what a convolution takes. */
function isPadded(conv: NodeProto): boolean {
  const automatic = findAttribute(conv, "auto_pad");
  const kind = automatic === undefined ? "NOTSET" : attributeText(automatic);
  if (kind !== "NOTSET" && kind !== "") return kind !== "VALID";
  return findAttribute(conv, "pads")?.ints.some((pad) => pad !== 0n) ?? false;
}

/** The constant weight of a convolution. */
interface Kernel extends Channels {
  readonly tensor: TensorProto;
  /** The Constant node that has it; undefined for an initializer. */
  readonly producer: NodeProto | undefined;
  /** Whether it may be multiplied. */
  readonly isOwn: boolean;
}

function findKernel(folding: Folding, conv: NodeProto): Kernel | undefined {
  const value = findConstant(folding, conv.input[1]);
  if (value?.constant === undefined) return undefined;
  const [count = 0, ...others] = value.constant.dims.map(Number);
  const isSmall = tensorByteLength(value.constant) <= maxKernelBytes;
  const isExcluded = matchesAny([value.name, conv.name], folding.exclude);
  const isOwn = value.uses.length === 1 && isSmall && !isExcluded;
  const { constant: tensor, producer } = value;
  return { tensor, producer, count, inner: others.length - 1, isOwn };
}

/** Zeros without one; undefined where it is no constant. */
function readBias(folding: Folding, conv: NodeProto, { count }: Kernel): Float64Array | undefined {
  const bias = conv.input[2] ?? "";
  return bias === "" ? new Float64Array(count) : readChannels(folding, bias, { count, inner: 0 });
}

function writeBias(folding: Folding, conv: NodeProto, numbers: Float64Array): void {
  const { graph, names, changed } = folding;
  const name = names.allocate(`${conv.input[1]}_bias`);
  const bias = floatConstant(name, [numbers.length], numbers);
  graph.initializer.push(bias);
  changed.add(bias);
  conv.input = [...conv.input.slice(0, 2), name];
}

function floatConstant(name: string, dims: number[], numbers: Iterable<number>): TensorProto {
  const rawData = new Uint8Array(Float32Array.from(numbers).buffer);
  return create(TensorProtoSchema, {
    name,
    dims: dims.map(BigInt),
    dataType: DataType.FLOAT,
    rawData,
  });
}

/** The node that computes a value, where only one node takes that. */
function findPrevious({ index, graph }: Folding, name: string): NodeProto | undefined {
  const value = index.find({ body: graph, outer: undefined }, name);
  const isOnly = findOnlyUse(value, graph) !== undefined && value?.scope.body === graph;
  return isOnly ? value.producer : undefined;
}

/** The only node that takes a node's result. */
function findNext({ index, graph }: Folding, node: NodeProto): NodeProto | undefined {
  const value = index.find({ body: graph, outer: undefined }, node.output[0] ?? "");
  return findOnlyUse(value, graph)?.node;
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
  if (operator === "BatchNormalization") {
    if (folding.constants === "numbers") return undefined;
    return readNormalization(folding, node, value, channels);
  }
  const isFirst = node.input[0] === value;
  const numbers = readChannels(folding, node.input[isFirst ? 1 : 0], channels);
  if (numbers === undefined) return undefined;
  if (folding.constants === "numbers" && numbers.some((each) => each !== numbers[0]))
    return undefined;
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
  /** Axes after the one of the channels. */
  readonly inner: number;
}

/** A constant that has a number for each channel, or one for all. */
function readChannels(
  folding: Folding,
  name: string | undefined,
  { count, inner }: Channels,
): Float64Array | undefined {
  const tensor = findConstant(folding, name)?.constant;
  if (tensor === undefined || tensorByteLength(tensor) > maxPlannedBytes) return undefined;
  const dims = tensor.dims.map(Number);
  const axis = dims.length - 1 - inner;
  const isOne = dims.every((size) => size === 1) && axis <= 1;
  const isVector = axis >= 0 && dims.every((size, each) => size === (each === axis ? count : 1));
  if (!isOne && !(isVector && axis <= 1)) return undefined;
  const bytes = readTensor(folding.model, tensor);
  const numbers = new Float32Array(bytes.slice().buffer);
  return isOne ? new Float64Array(count).fill(at(numbers, 0)) : Float64Array.from(numbers);
}

/** Puts a kernel that is multiplied, under the same name, in the place of one. */
function multiplyKernel(
  { model, graph, changed }: Folding,
  { tensor, producer }: Kernel,
  factors: Float64Array,
): void {
  if (factors.every((factor) => factor === 1)) return;
  const numbers = readNumbers(model, tensor);
  const inner = numbers.length / factors.length;
  for (const [channel, factor] of factors.entries()) {
    for (let each = channel * inner; each < (channel + 1) * inner; each++) {
      numbers[each] = at(numbers, each) * factor;
    }
  }
  const { name, dims, dataType } = tensor;
  const rawData = new Uint8Array(numbers.buffer);
  const multiplied = create(TensorProtoSchema, { name, dims, dataType, rawData });
  changed.add(multiplied);
  const attribute = producer && findAttribute(producer, "value");
  // Calls of a function may share the tensor.
  if (attribute !== undefined) attribute.t = multiplied;
  else graph.initializer.splice(graph.initializer.indexOf(tensor), 1, multiplied);
}

/** Of each output channel of a kernel, the sum of its numbers. */
function sumChannels(model: OnnxModel, kernel: TensorProto, count: number): Float64Array {
  const sums = new Float64Array(count);
  const numbers = readNumbers(model, kernel);
  const inner = numbers.length / count;
  for (const [index, number] of numbers.entries()) {
    const channel = Math.floor(index / inner);
    sums[channel] = at(sums, channel) + number;
  }
  return sums;
}

function readNumbers(model: OnnxModel, kernel: TensorProto): Float32Array<ArrayBuffer> {
  return new Float32Array(readTensor(model, kernel, maxKernelBytes).slice().buffer);
}
