import { create } from "@bufbuild/protobuf";
import { sortTopologically } from "../onnx/sort-topologically.ts";
import { elementBits } from "../onnx/element-type.ts";
import { nestedGraphs, nodeSubgraphs } from "../onnx/model-traversal.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import {
  TensorProto_DataType as DataType,
  TensorProtoSchema,
  type GraphProto,
  type NodeProto,
  type TensorProto,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";
import { countElements } from "../onnx/count-elements.ts";
import { planRearrangement, type Rearrangement } from "./plan-rearrangement.ts";

/** Most bytes of weights that are rearranged in memory; large ones seldom need to be. */
const maxFoldedBytes = 64 * 1024 * 1024;
/** Fewer are not worth quantizing. */
const minElements = 256;

interface FoldingState {
  readonly model: OnnxModel;
  readonly graphOutputs: ReadonlySet<string>;
  readonly useCounts: ReadonlyMap<string, number>;
  readonly foldedInputs: Set<string>;
  bytesLeft: number;
}

/** Gives the constant of a name; undefined for a name that stands for another value. */
type FindConstant = (name: string) => TensorProto | undefined;

/**
 * Computes nodes that only rearrange weights (Slice, Concat, Transpose, Reshape, Squeeze,
 * Unsqueeze), so that the operator that uses the result uses a weight. Converters leave such nodes
 * behind, above all before LSTM.
 */
export function foldConstants(model: OnnxModel): void {
  const { graph } = model.proto;
  if (graph === undefined) return;
  const graphs = [graph, ...nestedGraphs(graph.node)];
  const folding: FoldingState = {
    model,
    graphOutputs: new Set(graphs.flatMap(({ output }) => output.map(({ name }) => name))),
    useCounts: countInputUses(graphs),
    foldedInputs: new Set(),
    bytesLeft: maxFoldedBytes,
  };
  foldGraph(graph, () => undefined, folding);
  const uses = countInputUses(graphs);
  const isUnused = (name: string) =>
    folding.foldedInputs.has(name) && !uses.has(name) && !folding.graphOutputs.has(name);
  for (const each of graphs) {
    each.initializer = each.initializer.filter(({ name }) => !isUnused(name));
    each.node = each.node.filter(
      ({ opType, output }) => opType !== "Constant" || !output.every(isUnused),
    );
  }
}

function countInputUses(graphs: readonly GraphProto[]): Map<string, number> {
  const uses = new Map<string, number>();
  const nodes = graphs.flatMap(({ node }) => node);
  for (const name of nodes.flatMap(({ input }) => input)) {
    uses.set(name, (uses.get(name) ?? 0) + 1);
  }
  return uses;
}

function foldGraph(graph: GraphProto, findOuter: FindConstant, folding: FoldingState): void {
  const constants = new Map<string, TensorProto | undefined>();
  const find: FindConstant = (name) =>
    constants.has(name) ? constants.get(name) : findOuter(name);
  for (const tensor of graph.initializer) constants.set(tensor.name, tensor);
  for (const { name } of graph.input) constants.set(name, undefined);
  const kept = new Set<NodeProto>(graph.node);
  for (const node of sortTopologically(graph.node)) {
    const [output = ""] = node.output;
    const value = node.opType === "Constant" ? findAttribute(node, "value")?.t : undefined;
    const folded = value === undefined ? foldNode(node, find, folding) : undefined;
    for (const name of node.output) constants.set(name, undefined);
    if (value !== undefined) constants.set(output, value);
    if (folded !== undefined) {
      kept.delete(node);
      constants.set(output, folded);
      graph.initializer.push(folded);
      for (const name of node.input) folding.foldedInputs.add(name);
    }
    for (const inner of nodeSubgraphs(node)) foldGraph(inner, find, folding);
  }
  graph.node = graph.node.filter((node) => kept.has(node));
}

function foldNode(
  node: NodeProto,
  find: FindConstant,
  folding: FoldingState,
): TensorProto | undefined {
  const [output = ""] = node.output;
  if (node.domain !== "" || folding.graphOutputs.has(output)) return undefined;
  const tensors = node.input.map((name) => (name === "" ? undefined : find(name)));
  const [first] = tensors.filter((tensor) => tensor !== undefined);
  const isConstant = node.input.every((name, index) => name === "" || tensors[index] !== undefined);
  if (first === undefined || !isConstant || !isFoldable(node, first, folding)) return undefined;
  const rearrangement = planRearrangement(node, tensors, (tensor) =>
    readIntegers(tensor, folding.model),
  );
  if (rearrangement === undefined) return undefined;
  return materializeRearrangement(output, { rearrangement, dataType: first.dataType }, folding);
}

/** A transposed copy of a weight with other users would be stored besides the weight. */
function isFoldable(
  { opType }: NodeProto,
  { name, dataType }: TensorProto,
  { useCounts }: FoldingState,
): boolean {
  const isFloat = dataType === DataType.FLOAT || dataType === DataType.FLOAT16;
  return isFloat && (opType !== "Transpose" || (useCounts.get(name) ?? 0) <= 1);
}

function readIntegers(tensor: TensorProto, model: OnnxModel): number[] {
  const bytes = readTensor(model, tensor);
  const aligned = bytes.slice().buffer;
  if (tensor.dataType === DataType.INT64) return Array.from(new BigInt64Array(aligned), Number);
  return tensor.dataType === DataType.INT32 ? [...new Int32Array(aligned)] : [];
}

function materializeRearrangement(
  name: string,
  { rearrangement, dataType }: { rearrangement: Rearrangement; dataType: number },
  folding: FoldingState,
): TensorProto | undefined {
  const width = (elementBits(dataType) ?? 8) / 8;
  const { dims, parts } = rearrangement;
  const elements = countElements(dims);
  const needed = parts.reduce(
    (sum, { tensor }) => sum + tensorByteLength(tensor),
    elements * width,
  );
  if (elements < minElements || needed > folding.bytesLeft) return undefined;
  folding.bytesLeft -= elements * width;
  const rawData = new Uint8Array(elements * width);
  for (const { tensor, from, to, sizes } of parts) {
    const source = readTensor(folding.model, tensor);
    copyElements({ source, target: rawData, width }, { sizes, from, to });
  }
  return create(TensorProtoSchema, { name, dims: dims.map(BigInt), dataType, rawData });
}

interface ElementCopy {
  readonly sizes: readonly number[];
  readonly from: { readonly offset: number; readonly strides: readonly number[] };
  readonly to: { readonly offset: number; readonly strides: readonly number[] };
}

function copyElements(
  bytes: { source: Uint8Array; target: Uint8Array; width: number },
  { sizes, from, to }: ElementCopy,
): void {
  const { source, target, width } = bytes;
  const position = sizes.map(() => 0);
  const byteOffset = (place: ElementCopy["from"]) =>
    position.reduce((sum, index, axis) => sum + index * (place.strides[axis] ?? 0), place.offset) *
    width;
  for (let left = countElements(sizes); left > 0; left--) {
    const start = byteOffset(from);
    const end = byteOffset(to);
    for (let byte = 0; byte < width; byte++) target[end + byte] = source[start + byte] ?? 0;
    for (let axis = sizes.length - 1; axis >= 0; axis--) {
      const next = (position[axis] ?? 0) + 1;
      position[axis] = next === sizes[axis] ? 0 : next;
      if (next !== sizes[axis]) break;
    }
  }
}
