import { sortTopologically } from "../onnx/sort-topologically.ts";
import { usedNames } from "../onnx/used-names.ts";
import { rawByteLength } from "../onnx/element-type.ts";
import { nestedGraphs, nodeTensors } from "../onnx/model-traversal.ts";
import type {
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  TensorProto,
} from "../onnx/onnx_pb.js";
import { elementCount } from "../onnx/tensor-shape.ts";

/** A node that a pipeline runs in one of its stages. */
export interface PipelineStep {
  readonly node: NodeProto;
  /** Names that the node or its subgraphs use. */
  readonly inputs: readonly string[];
  /** Those of them that are no parameters: inputs of the graph and values that other steps make. */
  readonly runtimeInputs: readonly string[];
  readonly outputs: readonly string[];
  /** Indices of the parameters that the node, its subgraphs and the functions that it calls use. */
  readonly parameters: readonly number[];
}

export interface Parameter {
  readonly bytes: number;
  readonly elements: number;
}

/** A model's graph as a pipeline sees it. Initializers and Constant nodes are no steps: each stage has a copy of those it uses. */
export interface PipelineGraph {
  readonly graph: GraphProto;
  readonly steps: readonly PipelineStep[];
  readonly parameters: readonly Parameter[];
  /** Shapes of initializers and of Constant nodes' tensors. */
  readonly parameterShapes: ReadonlyMap<string, readonly number[]>;
  /** Constant nodes by the value that they make. */
  readonly constants: ReadonlyMap<string, NodeProto>;
}

export function pipelineGraph(proto: ModelProto): PipelineGraph {
  const { graph } = proto;
  if (!graph) throw new TypeError("The model has no graph");
  const parameters = new ParameterIndex(proto);
  const constants = new Map<string, NodeProto>();
  const parameterShapes = new Map<string, readonly number[]>();
  for (const tensor of graph.initializer) {
    parameters.addNamed(tensor.name, [tensor]);
    parameterShapes.set(tensor.name, tensor.dims.map(Number));
  }
  for (const { values, indices, dims } of graph.sparseInitializer) {
    if (!values) continue;
    parameters.addNamed(values.name, indices ? [values, indices] : [values]);
    parameterShapes.set(values.name, dims.map(Number));
  }
  for (const node of graph.node) {
    const [name] = node.output;
    if (!isConstant(node) || name === undefined) continue;
    const tensors = [...nodeTensors([node])];
    constants.set(name, node);
    parameters.addNamed(name, tensors);
    parameterShapes.set(name, tensors[0]?.dims.map(Number) ?? []);
  }
  const nodes = sortTopologically(graph.node).filter((node) => !isConstant(node));
  const steps = nodes.map((node): PipelineStep => {
    const inputs = [...usedNames(node)];
    return {
      node,
      inputs,
      runtimeInputs: inputs.filter((name) => !parameters.has(name)),
      outputs: node.output.filter((name) => name !== ""),
      parameters: [
        ...new Set([
          ...inputs.flatMap((name) => parameters.find(name)),
          ...parameters.addNodeTensors(node),
        ]),
      ],
    };
  });
  return {
    graph,
    steps: deferParameterSteps(steps),
    parameters: parameters.all,
    parameterShapes,
    constants,
  };
}

/**
 * Moves each step that works on parameters alone, such as one that dequantizes a weight, to just before the first step that uses what it
 * makes, so that a weight and its use are on the same side of a cut.
 */
function deferParameterSteps(steps: readonly PipelineStep[]): PipelineStep[] {
  const lateValues = new Set<string>();
  const places = steps.map((step, index) => {
    const isLate = step.runtimeInputs.every((name) => lateValues.has(name));
    if (isLate) for (const name of step.outputs) lateValues.add(name);
    return { step, isLate, index, at: index };
  });
  const firstUses = new Map<string, number>();
  for (const place of places.toReversed()) {
    const { step, isLate } = place;
    if (isLate)
      place.at = Math.min(...step.outputs.map((name) => firstUses.get(name) ?? steps.length));
    for (const name of step.runtimeInputs)
      firstUses.set(name, Math.min(place.at, firstUses.get(name) ?? steps.length));
  }
  return places
    .toSorted((a, b) => a.at - b.at || Number(b.isLate) - Number(a.isLate) || a.index - b.index)
    .map(({ step }) => step);
}

/** Functions that nodes call, directly or through others, by key. */
export function calledFunctions(proto: ModelProto, nodes: Iterable<NodeProto>): Set<FunctionProto> {
  const byKey = new Map(
    proto.functions.map((called) => [
      functionKey(called.domain, called.name, called.overload),
      called,
    ]),
  );
  const functions = new Set<FunctionProto>();
  const pending = [...nodes];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    for (const graph of nestedGraphs([node])) pending.push(...graph.node);
    const called = byKey.get(functionKey(node.domain, node.opType, node.overload));
    if (!called || functions.has(called)) continue;
    functions.add(called);
    pending.push(...called.node);
  }
  return functions;
}

function functionKey(domain: string, name: string, overload: string): string {
  return [domain === "ai.onnx" ? "" : domain, name, overload].join("\0");
}

export function isConstant({ opType, domain }: NodeProto): boolean {
  return opType === "Constant" && (domain === "" || domain === "ai.onnx");
}

function createParameter(tensors: readonly TensorProto[]): Parameter {
  const counts = tensors.map(({ dims, dataType }) => ({ dataType, elements: elementCount(dims) }));
  return {
    bytes: counts.reduce(
      (total, { elements, dataType }) => total + (rawByteLength(elements, dataType) ?? 0),
      0,
    ),
    elements: counts.reduce((total, { elements }) => total + elements, 0),
  };
}

/** Numbers a model's parameters as they are met. */
class ParameterIndex {
  readonly all: Parameter[] = [];
  readonly #proto: ModelProto;
  readonly #named = new Map<string, number>();
  readonly #nodeTensors = new Map<TensorProto, number>();

  constructor(proto: ModelProto) {
    this.#proto = proto;
  }

  addNamed(name: string, tensors: readonly TensorProto[]): void {
    this.#named.set(name, this.all.push(createParameter(tensors)) - 1);
  }

  has(name: string): boolean {
    return this.#named.has(name);
  }

  find(name: string): number[] {
    const index = this.#named.get(name);
    return index === undefined ? [] : [index];
  }

  /** Tensors in a node's attributes and subgraphs and in the functions that it calls. */
  addNodeTensors(node: NodeProto): number[] {
    const bodies = [...calledFunctions(this.#proto, [node])].flatMap((called) => called.node);
    return [...nodeTensors([node, ...bodies])].map((tensor) => {
      const known = this.#nodeTensors.get(tensor);
      if (known !== undefined) return known;
      const index = this.all.push(createParameter([tensor])) - 1;
      this.#nodeTensors.set(tensor, index);
      return index;
    });
  }
}
