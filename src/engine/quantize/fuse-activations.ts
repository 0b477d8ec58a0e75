import { create } from "@bufbuild/protobuf";
import { operatorName } from "./channel-axis.ts";
import { findOnlyUse, GraphIndex, type GraphValue } from "./graph-index.ts";
import { importContribOperators } from "./graph-rewrite.ts";
import { UniqueNames } from "../onnx/names.ts";
import { findAttribute, floatAttribute } from "../onnx/node-attributes.ts";
import {
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  TensorProto_DataType as DataType,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";

/**
 * Replaces clip(x + c, 0, h) / h by HardSigmoid and x · clip(x + c, 0, h) / h by the product with it,
 * the form of a hard swish that ONNX Runtime computes as part of a convolution.
 */
export function fuseHardSigmoid(model: OnnxModel, graph: GraphProto): void {
  const lookup = new Lookup(model, graph);
  const names = UniqueNames.forModel(model.proto);
  const replacement = new Replacement();
  for (const node of graph.node) {
    const pattern = operatorName(node) === "Clip" ? matchHardSigmoid(lookup, node) : undefined;
    if (pattern === undefined) continue;
    const { input, height, shift, product, last, nodes } = pattern;
    const result = last.output[0] ?? "";
    const gate = product === undefined ? result : names.allocate(`${result}_gate`);
    const attribute = [floatAttribute("alpha", 1 / height), floatAttribute("beta", shift / height)];
    const { name } = product === undefined ? last : node;
    const sigmoid = { name, opType: "HardSigmoid", input: [input], output: [gate], attribute };
    const created = [create(NodeProtoSchema, sigmoid)];
    if (product !== undefined) {
      const multiplied = { name: product.name, opType: "Mul", input: [input, gate] };
      created.push(create(NodeProtoSchema, { ...multiplied, output: [result] }));
    }
    replacement.add([...nodes, last], created);
  }
  replacement.apply(graph);
}

interface HardSigmoidPattern {
  readonly input: string;
  readonly height: number;
  readonly shift: number;
  /** The product with the input, where there is one. */
  readonly product: NodeProto | undefined;
  /** Those before the last. */
  readonly nodes: readonly NodeProto[];
  readonly last: NodeProto;
}

function matchHardSigmoid(lookup: Lookup, clip: NodeProto): HardSigmoidPattern | undefined {
  const { low, high: height } = readBounds(lookup, clip);
  const addition = lookup.find(clip.input[0])?.producer;
  const isOnlyForClip = lookup.findOnlyUser(clip.input[0]) === clip;
  const [input, shift] = (addition && splitConstant(lookup, addition, "Add")) ?? [];
  if (!addition || !isOnlyForClip || input === undefined || shift === undefined) return undefined;
  if (low !== 0 || !(height > 0 && height < Infinity)) return undefined;
  const end = findDivision(lookup, clip, { input, height });
  if (end === undefined) return undefined;
  const { product, last } = end;
  const nodes = [addition, clip, ...(product === undefined ? [] : [product])];
  return { input, height, shift, product, nodes, last };
}

/** The division of what a Clip computes, or of its product with the input. */
function findDivision(
  lookup: Lookup,
  clip: NodeProto,
  { input, height }: Pick<HardSigmoidPattern, "input" | "height">,
): Pick<HardSigmoidPattern, "product" | "last"> | undefined {
  const next = lookup.findOnlyUser(clip.output[0]);
  if (next === undefined) return undefined;
  if (dividesBy(lookup, next, height)) return { product: undefined, last: next };
  const isProduct = operatorName(next) === "Mul" && otherInput(next, clip) === input;
  const last = isProduct ? lookup.findOnlyUser(next.output[0]) : undefined;
  const isDivided = last !== undefined && dividesBy(lookup, last, height);
  return isDivided ? { product: next, last } : undefined;
}

/** Limits of a Clip: attributes before opset 11. */
function readBounds(lookup: Lookup, clip: NodeProto): { low: number; high: number } {
  const read = (input: number, name: string, absent: number) => {
    const limit = clip.input[input] ?? "";
    if (limit === "") return findAttribute(clip, name)?.f ?? absent;
    return lookup.readNumber(limit) ?? NaN;
  };
  return { low: read(1, "min", -Infinity), high: read(2, "max", Infinity) };
}

function dividesBy(lookup: Lookup, node: NodeProto, divisor: number): boolean {
  const [, factor] = splitConstant(lookup, node, "Mul") ?? [];
  const [, quotient] = splitConstant(lookup, node, "Div") ?? [];
  return isNear(factor, 1 / divisor) || isNear(quotient, divisor);
}

/** What a node takes, and the only number of the constant that it computes with. */
function splitConstant(
  lookup: Lookup,
  node: NodeProto,
  operator: "Add" | "Mul" | "Div",
): [input: string, number: number] | undefined {
  const [first = "", second = ""] = node.input;
  if (operatorName(node) !== operator) return undefined;
  const number = lookup.readNumber(second);
  if (number !== undefined) return [first, number];
  const other = operator === "Div" ? undefined : lookup.readNumber(first);
  return other === undefined ? undefined : [second, other];
}

function isNear(number: number | undefined, wanted: number): boolean {
  return number !== undefined && Math.abs(number - wanted) < 1e-6 * wanted;
}

/** Replaces x · (erf(x / √2) + 1) · 0.5 by ONNX Runtime's Gelu. */
export function fuseGelu(model: OnnxModel, graph: GraphProto): void {
  const replacement = new Replacement();
  for (const { nodes, last, input } of findGelus(model, graph)) {
    const { name, output } = last;
    const gelu = { name, output, opType: "Gelu", domain: "com.microsoft", input: [input] };
    replacement.add([...nodes, last], [create(NodeProtoSchema, gelu)]);
  }
  if (replacement.apply(graph)) importContribOperators(model.proto);
}

/** The nodes that compute x · (erf(x / √2) + 1) · 0.5, which runtimes look for too. */
export function findGelus(model: OnnxModel, graph: GraphProto): GeluPattern[] {
  const lookup = new Lookup(model, graph);
  return graph.node.flatMap((node) =>
    operatorName(node) === "Erf" ? (matchGelu(lookup, node) ?? []) : [],
  );
}

interface GeluPattern {
  readonly input: string;
  /** Those before the last. */
  readonly nodes: readonly NodeProto[];
  readonly last: NodeProto;
}

function matchGelu(lookup: Lookup, erf: NodeProto): GeluPattern | undefined {
  const scaling = lookup.find(erf.input[0])?.producer;
  const one = lookup.findOnlyUser(erf.output[0]);
  const product = one && lookup.findOnlyUser(one.output[0]);
  const last = product && lookup.findOnlyUser(product.output[0]);
  if (!scaling || !one || !product || !last) return undefined;
  if (lookup.findOnlyUser(scaling.output[0]) !== erf) return undefined;
  const operators = [one, product, last].map(operatorName).join();
  const [input, divisor] = scaling.input;
  const others = [
    [divisor, Math.SQRT2],
    [otherInput(one, erf), 1],
    [otherInput(last, product), 0.5],
  ] as const;
  const hasNumbers = others.every(([name, number]) => isNear(lookup.readNumber(name), number));
  const isGelu = operatorName(scaling) === "Div" && operators === "Add,Mul,Mul";
  if (!isGelu || otherInput(product, one) !== input || !hasNumbers || input === undefined)
    return undefined;
  return { input, nodes: [scaling, erf, one, product], last };
}

/** What a node of two inputs takes besides the result of another. */
function otherInput(node: NodeProto, other: NodeProto): string | undefined {
  return node.input.find((name) => name !== other.output[0]);
}

/** The values of a graph, by their names. */
class Lookup {
  readonly #model: OnnxModel;
  readonly #graph: GraphProto;
  readonly #index: GraphIndex;
  /** Constants among them are defaults, which callers may replace. */
  readonly #inputs: ReadonlySet<string>;

  constructor(model: OnnxModel, graph: GraphProto) {
    this.#model = model;
    this.#graph = graph;
    this.#index = new GraphIndex(model.proto);
    this.#inputs = new Set(graph.input.map(({ name }) => name));
  }

  find(name = ""): GraphValue | undefined {
    return this.#index.find({ body: this.#graph, outer: undefined }, name);
  }

  /** The node of this graph that takes a value, where nothing else does. */
  findOnlyUser(name: string | undefined): NodeProto | undefined {
    return findOnlyUse(this.find(name), this.#graph)?.node;
  }

  /** The only element of a float32 constant, of no axes or one. */
  readNumber(name = ""): number | undefined {
    const tensor = this.find(name)?.constant;
    if (tensor === undefined || tensor.dataType !== DataType.FLOAT || tensor.dims.length > 1)
      return undefined;
    if (tensorByteLength(tensor) !== 4 || this.#inputs.has(name)) return undefined;
    return new Float32Array(readTensor(this.#model, tensor).slice().buffer)[0];
  }
}

/** Nodes that take the places of others. */
class Replacement {
  readonly #created = new Map<NodeProto, readonly NodeProto[]>();

  /** @param nodes what is replaced, at the place of the last one */
  add(nodes: readonly NodeProto[], created: readonly NodeProto[]): void {
    for (const [index, node] of nodes.entries()) {
      this.#created.set(node, index === nodes.length - 1 ? created : []);
    }
  }

  /** @returns whether there are any */
  apply(graph: GraphProto): boolean {
    graph.node = graph.node.flatMap((node) => this.#created.get(node) ?? [node]);
    return this.#created.size > 0;
  }
}
