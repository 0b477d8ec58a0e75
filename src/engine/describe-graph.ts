import { describeType } from "./describe-interface.ts";
import { elementTypeName } from "./onnx/element-type.ts";
import { nestedGraphs, nodeSubgraphs } from "./onnx/model-traversal.ts";
import {
  AttributeProto_AttributeType as AttributeType,
  type AttributeProto,
  type GraphProto,
  type NodeProto,
  type TensorProto,
} from "./onnx/onnx_pb.js";
import type { Weight } from "./quantize/find-weights.ts";
import {
  modelGraphLimits,
  type ModelGraphNode,
  type ModelGraphPart,
} from "../contract/jobs/model-graph.ts";
import { truncate } from "../contract/text/truncate.ts";
import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";

/** A model's graph as people see it: constants are values, not nodes. */
export function describeGraph(graph: GraphProto, weights: readonly Weight[]): ModelGraphPart {
  return new PartWriter(graph, { weights: listWeights(weights) }).write("");
}

interface Surroundings {
  /** Positions of the weights that a node computes with. */
  readonly weights: ReadonlyMap<NodeProto, ReadonlySet<number>>;
  /** Of a subgraph, the graph with its node. */
  readonly around?: PartWriter;
}

/** Describes one graph; its subgraphs take values of it. */
class PartWriter {
  readonly #graph: GraphProto;
  readonly #surroundings: Surroundings;
  /** Types of what has one. */
  readonly #types = new Map<string, string>();
  readonly #constants = new Set<string>();
  /** Names of the values that come from outside or from nodes. */
  readonly #flowing: Set<string>;
  readonly #captured = new Set<string>();
  readonly #positions = new Map<string, number>();

  constructor(graph: GraphProto, surroundings: Surroundings) {
    this.#graph = graph;
    this.#surroundings = surroundings;
    for (const tensor of graph.initializer) this.#addConstant(tensor.name, tensor);
    for (const { name, type } of [...graph.valueInfo, ...graph.input, ...graph.output]) {
      if (type?.value.case === undefined || this.#constants.has(name)) continue;
      this.#types.set(name, describeType(type));
    }
    this.#flowing = new Set(graph.input.map(({ name }) => name));
    for (const node of graph.node) {
      if (node.opType === "Constant") this.#addConstant(node.output[0] ?? "", constantTensor(node));
      else for (const output of node.output) this.#flowing.add(output);
    }
    for (const name of this.#constants) this.#flowing.delete(name);
  }

  write(name: string): ModelGraphPart {
    const shown = this.#graph.node.filter(({ opType }) => opType !== "Constant");
    const nodes = shown.map((node) => this.#describeNode(node));
    const outputs = this.#graph.output.map((output) => this.#locate(output.name));
    const formal = this.#graph.input.filter((input) => !this.#constants.has(input.name));
    const inputs = [...formal.map((input) => input.name), ...this.#captured];
    return {
      name: shownText(name),
      nodes,
      inputs: inputs.map((input) => this.#locate(input)),
      outputs,
      values: [...this.#positions.keys()].map((value) => ({
        name: shownText(value),
        type: shortened(this.findType(value)),
      })),
    };
  }

  #describeNode(node: NodeProto): ModelGraphNode {
    const { weights } = this.#surroundings;
    const found = [node, ...nestedNodes(node)].flatMap((each) => [...(weights.get(each) ?? [])]);
    const inner = node.attribute.flatMap(({ name, g, graphs }) =>
      [...(g ? [g] : []), ...graphs].map((graph) => ({ name, graph })),
    );
    const writers = inner.map(({ name, graph }) => ({
      name,
      writer: new PartWriter(graph, { weights, around: this }),
    }));
    const subgraphs = writers.map(({ name, writer }) => writer.write(name));
    const captured = new Set(writers.flatMap(({ writer }) => [...writer.#captured]));
    return {
      name: shownText(node.name || (node.output[0] ?? "")),
      opType: shownText(node.opType),
      inputs: node.input.map((name) => this.#locateOperand(name)),
      outputs: node.output.map((name) => this.#locateOperand(name)),
      captured: [...captured].map((name) => this.#locate(name)),
      attributes: node.attribute.flatMap(describeAttribute),
      weights: [...new Set(found)],
      subgraphs,
    };
  }

  #locateOperand(name: string): number | null {
    return name === "" ? null : this.#locate(name);
  }

  /** The position of a value, which has one from its first use on. */
  #locate(name: string): number {
    const known = this.#positions.get(name);
    if (known !== undefined) return known;
    const isOwn = this.#flowing.has(name) || this.#constants.has(name);
    if (!isOwn && this.#surroundings.around?.isFlowing(name)) this.#captured.add(name);
    this.#positions.set(name, this.#positions.size);
    return this.#positions.size - 1;
  }

  /** Whether a value is none of the constants, as far as this graph and those around it say. */
  isFlowing(name: string): boolean {
    if (this.#constants.has(name)) return false;
    return this.#flowing.has(name) || (this.#surroundings.around?.isFlowing(name) ?? false);
  }

  findType(name: string): string | undefined {
    return this.#types.get(name) ?? this.#surroundings.around?.findType(name);
  }

  #addConstant(name: string, tensor: TensorProto | undefined): void {
    this.#constants.add(name);
    if (tensor !== undefined) this.#types.set(name, describeTensor(tensor));
  }
}

function* nestedNodes(node: NodeProto): Generator<NodeProto> {
  if (nodeSubgraphs(node).length === 0) return;
  for (const graph of nestedGraphs([node])) yield* graph.node;
}

function constantTensor({ attribute }: NodeProto): TensorProto | undefined {
  return attribute.find(({ t }) => t !== undefined)?.t;
}

function describeTensor({ dataType, dims }: TensorProto): string {
  return `${elementTypeName(dataType)}[${dims.join(",")}]`;
}

function describeAttribute(attribute: AttributeProto): { name: string; value: string }[] {
  const { name, t, g, tensors, graphs } = attribute;
  if (g !== undefined || graphs.length > 0) return [];
  const tensorTexts = [...(t ? [t] : []), ...tensors].map(describeTensor);
  const value = tensorTexts.length > 0 ? tensorTexts.join(", ") : describePlain(attribute);
  return [{ name: shownText(name), value: shownText(value) }];
}

/** Lists longer than what is shown of them are not written in full. */
function describePlain({ type, f, i, s, floats, ints, strings }: AttributeProto): string {
  const most = modelGraphLimits.text;
  const texts: Partial<Record<AttributeType, readonly string[]>> = {
    [AttributeType.FLOAT]: [roundFloat(f)],
    [AttributeType.INT]: [String(i)],
    [AttributeType.STRING]: [decode(s)],
    [AttributeType.FLOATS]: floats.slice(0, most).map(roundFloat),
    [AttributeType.INTS]: ints.slice(0, most).map(String),
    [AttributeType.STRINGS]: strings.slice(0, most).map(decode),
  };
  return texts[type]?.join(", ") ?? "not shown";
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

/** As a person wrote it: the attribute has single precision. */
function roundFloat(value: number): string {
  return String(Number(value.toPrecision(7)));
}

function listWeights(weights: readonly Weight[]): Map<NodeProto, Set<number>> {
  const found = new Map<NodeProto, Set<number>>();
  for (const { index, consumers } of weights) {
    for (const { node } of consumers) found.set(node, (found.get(node) ?? new Set()).add(index));
  }
  return found;
}

function shortened(type: string | undefined): string | null {
  return type === undefined ? null : shownText(type);
}

function shownText(text: string): string {
  return truncate(replaceHiddenCharacters(text), modelGraphLimits.text);
}
