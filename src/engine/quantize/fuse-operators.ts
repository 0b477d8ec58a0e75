import { create } from "@bufbuild/protobuf";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { GraphIndex, type GraphValue } from "./graph-index.ts";
import { foldChannelwise } from "./fold-channelwise.ts";
import { joinAdditions } from "./join-additions.ts";
import { operatorName } from "./channel-axis.ts";
import { importContribOperators } from "./graph-rewrite.ts";
import {
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  TensorProto_DataType as DataType,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";
import { sortNodes } from "../onnx/sort-nodes.ts";

/**
 * Fuses what runtimes fuse, before QuantizeLinear and DequantizeLinear come between the nodes: a
 * runtime gives each consumer a DequantizeLinear of its own, and finds no pattern across them.
 */
export function fuseOperators(model: OnnxModel, operators: Recipe["operators"]): void {
  const { graph } = model.proto;
  if (graph === undefined) return;
  sortNodes(graph);
  const { values: before } = new GraphIndex(model.proto);
  removeIdentities(model, graph);
  foldChannelwise(model, graph);
  joinAdditions(model, graph);
  if (operators === "contrib") fuseGelu(model, graph);
  dropUnused(model, graph, before);
}

/** Removes constants that only nodes had which are no more. */
function dropUnused({ proto }: OnnxModel, graph: GraphProto, before: readonly GraphValue[]): void {
  const wasUsed = new Set(before.flatMap(({ name, uses }) => (uses.length > 0 ? [name] : [])));
  const inputs = new Set(graph.input.map(({ name }) => name));
  const unused = new GraphIndex(proto).values.filter(
    ({ name, scope, constant, uses, isOutput }) =>
      scope.body === graph &&
      constant !== undefined &&
      uses.length === 0 &&
      !isOutput &&
      wasUsed.has(name) &&
      !inputs.has(name),
  );
  const tensors = new Set(unused.map(({ constant }) => constant));
  const producers = new Set(unused.map(({ producer }) => producer));
  graph.initializer = graph.initializer.filter((tensor) => !tensors.has(tensor));
  graph.node = graph.node.filter((node) => !producers.has(node));
}

function removeIdentities({ proto }: OnnxModel, graph: GraphProto): void {
  const index = new GraphIndex(proto);
  const removed = new Set<NodeProto>();
  for (const node of graph.node) {
    const [source, result] = [node.input[0], node.output[0]];
    if (operatorName(node) !== "Identity" || source === undefined || result === undefined) continue;
    const value = index.find({ body: graph, outer: undefined }, result);
    const isLocal = value?.uses.every(({ scope }) => scope.body === graph) ?? false;
    if (value === undefined || value.isOutput || !isLocal) continue;
    for (const { node: user, input } of value.uses) user.input[input] = source;
    removed.add(node);
  }
  graph.node = graph.node.filter((node) => !removed.has(node));
}

/** Replaces x · (erf(x / √2) + 1) · 0.5 by ONNX Runtime's Gelu. */
function fuseGelu(model: OnnxModel, graph: GraphProto): void {
  const index = new GraphIndex(model.proto);
  const find = (name: string | undefined) =>
    index.find({ body: graph, outer: undefined }, name ?? "");
  const removed = new Set<NodeProto>();
  const replaced = new Map<NodeProto, NodeProto>();
  for (const node of graph.node) {
    const pattern = operatorName(node) === "Erf" ? matchGelu(model, node, find) : undefined;
    if (pattern === undefined) continue;
    const { nodes, last, input } = pattern;
    for (const each of nodes) removed.add(each);
    const { name, output } = last;
    const gelu = { name, output, opType: "Gelu", domain: "com.microsoft", input: [input] };
    replaced.set(last, create(NodeProtoSchema, gelu));
  }
  if (replaced.size === 0) return;
  importContribOperators(model.proto);
  graph.node = graph.node.flatMap((node) =>
    removed.has(node) ? [] : [replaced.get(node) ?? node],
  );
}

type FindValue = (name: string | undefined) => GraphValue | undefined;

interface GeluPattern {
  readonly input: string;
  /** Those before the last. */
  readonly nodes: readonly NodeProto[];
  readonly last: NodeProto;
}

function matchGelu(model: OnnxModel, erf: NodeProto, find: FindValue): GeluPattern | undefined {
  const scaling = find(erf.input[0])?.producer;
  const one = findOnlyUser(find(erf.output[0]), "Add");
  const product = one && findOnlyUser(find(one.output[0]), "Mul");
  const last = product && findOnlyUser(find(product.output[0]), "Mul");
  if (!scaling || !one || !product || !last) return undefined;
  if (findOnlyUser(find(scaling.output[0]), "Erf") === undefined) return undefined;
  const [input, divisor] = scaling.input;
  const others = [
    [divisor, Math.SQRT2],
    [otherInput(one, erf), 1],
    [otherInput(last, product), 0.5],
  ] as const;
  const hasNumbers = others.every(([name, number]) => {
    const found = readNumber(model, find(name));
    return found !== undefined && Math.abs(found - number) < 1e-6;
  });
  const isGelu = operatorName(scaling) === "Div" && otherInput(product, one) === input;
  if (!isGelu || !hasNumbers || input === undefined) return undefined;
  return { input, nodes: [scaling, erf, one, product], last };
}

/** What a node of two inputs takes besides the result of another. */
function otherInput(node: NodeProto, other: NodeProto): string | undefined {
  return node.input.find((name) => name !== other.output[0]);
}

function findOnlyUser(value: GraphValue | undefined, operator: string): NodeProto | undefined {
  const [use, ...others] = value?.uses ?? [];
  if (use === undefined || others.length > 0 || value?.isOutput === true) return undefined;
  return operatorName(use.node) === operator ? use.node : undefined;
}

/** The only element of a float32 constant. */
function readNumber(model: OnnxModel, value: GraphValue | undefined): number | undefined {
  const tensor = value?.constant;
  if (tensor === undefined || tensor.dataType !== DataType.FLOAT || tensorByteLength(tensor) !== 4)
    return undefined;
  return new Float32Array(readTensor(model, tensor).slice().buffer)[0];
}
