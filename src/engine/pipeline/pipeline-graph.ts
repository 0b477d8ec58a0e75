import { CalledFunctions } from "./called-functions.ts";
import { rawByteLength } from "../onnx/element-type.ts";
import { nodeTensors } from "../onnx/model-traversal.ts";
import { usedNames } from "../onnx/names.ts";
import type { GraphProto, ModelProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { sortTopologically } from "../onnx/sort-nodes.ts";
import { elementCount } from "../onnx/tensor-shape.ts";
import { isStandardDomain } from "../onnx/node-attributes.ts";

/**
 * A model's graph as a pipeline uses it. Initializers and Constant nodes are not steps: each stage
 * has a copy of those it uses.
 */
export interface PipelineGraph {
  readonly graph: GraphProto;
  readonly steps: readonly PipelineStep[];
  readonly parameters: ParameterIndex["all"];
  /** Shapes of initializers and of Constant nodes' tensors. */
  readonly parameterShapes: ReadonlyMap<string, readonly number[]>;
  /** Constant nodes by the name of their output. */
  readonly constants: ReadonlyMap<string, NodeProto>;
}

export function pipelineGraph(proto: ModelProto): PipelineGraph {
  const { graph } = proto;
  if (!graph) throw new TypeError("The model has no graph");
  const constants = findConstants(graph);
  const parameters = new ParameterIndex(proto);
  addGraphParameters(parameters, graph, constants);
  const steps = sortTopologically(graph.node)
    .filter((node) => !isConstantNode(node))
    .map((node) => createStep(node, parameters));
  return {
    graph,
    steps: deferParameterSteps(steps),
    parameters: parameters.all,
    parameterShapes: parameters.shapes,
    constants,
  };
}

function findConstants({ node }: GraphProto): Map<string, NodeProto> {
  return new Map(
    node.filter(isConstantNode).flatMap((constant) => {
      const [name] = constant.output;
      return name === undefined ? [] : [[name, constant]];
    }),
  );
}

function addGraphParameters(
  parameters: ParameterIndex,
  { initializer, sparseInitializer }: GraphProto,
  constants: ReadonlyMap<string, NodeProto>,
): void {
  for (const tensor of initializer) parameters.addNamed(tensor.name, [tensor], tensor.dims);
  for (const { values, indices, dims } of sparseInitializer) {
    if (values) parameters.addNamed(values.name, indices ? [values, indices] : [values], dims);
  }
  for (const [name, node] of constants) {
    const tensors = [...nodeTensors([node])];
    parameters.addNamed(name, tensors, tensors[0]?.dims ?? []);
  }
}

function createStep(node: NodeProto, parameters: ParameterIndex): PipelineStep {
  const inputs = [...usedNames(node)];
  const used = inputs.flatMap((name) => parameters.find(name));
  return {
    node,
    inputs,
    runtimeInputs: inputs.filter((name) => !parameters.has(name)),
    outputs: node.output.filter((name) => name !== ""),
    parameters: [...new Set([...used, ...parameters.addNodeTensors(node)])],
  };
}

interface Place {
  readonly step: PipelineStep;
  /** Whether the step uses nothing but parameters and what other such steps compute. */
  readonly isLate: boolean;
  readonly index: number;
  /** The step to be placed before. */
  at: number;
}

/**
 * Moves each step that works only on parameters, such as one that dequantizes a weight, to just
 * before the first step that uses its outputs, so that a weight and its use are on the same side of
 * a cut.
 */
function deferParameterSteps(steps: readonly PipelineStep[]): PipelineStep[] {
  const places = createPlaces(steps);
  placeBeforeFirstUses(places);
  return places
    .toSorted((a, b) => a.at - b.at || Number(b.isLate) - Number(a.isLate) || a.index - b.index)
    .map(({ step }) => step);
}

function createPlaces(steps: readonly PipelineStep[]): Place[] {
  const lateValues = new Set<string>();
  return steps.map((step, index) => {
    const isLate = step.runtimeInputs.every((name) => lateValues.has(name));
    if (isLate) for (const name of step.outputs) lateValues.add(name);
    return { step, isLate, index, at: index };
  });
}

function placeBeforeFirstUses(places: readonly Place[]): void {
  const firstUses = new Map<string, number>();
  const firstUse = (name: string) => firstUses.get(name) ?? places.length;
  for (const place of places.toReversed()) {
    const { outputs, runtimeInputs } = place.step;
    if (place.isLate) {
      place.at = outputs.reduce((first, name) => Math.min(first, firstUse(name)), Infinity);
    }
    for (const name of runtimeInputs) firstUses.set(name, Math.min(place.at, firstUse(name)));
  }
}

const float32Bytes = 4;

interface Parameter {
  readonly bytes: number;
  /** Bytes in the form in which the runtime keeps it; narrow types count as dequantized. */
  readonly runtimeBytes: number;
  readonly elements: number;
}

/** The parameters of a model, numbered in the order in which they are added. */
class ParameterIndex {
  readonly all: Parameter[] = [];
  /** Shapes of the parameters that have names. */
  readonly shapes = new Map<string, readonly number[]>();
  readonly #functions: CalledFunctions;
  readonly #named = new Map<string, number>();
  readonly #nodeTensors = new Map<TensorProto, number>();

  constructor(proto: ModelProto) {
    this.#functions = new CalledFunctions(proto);
  }

  addNamed(name: string, tensors: readonly TensorProto[], dims: readonly bigint[]): void {
    this.#named.set(name, this.all.push(createParameter(tensors, dims)) - 1);
    this.shapes.set(name, dims.map(Number));
  }

  has(name: string): boolean {
    return this.#named.has(name);
  }

  find(name: string): number[] {
    const index = this.#named.get(name);
    return index === undefined ? [] : [index];
  }

  /** Adds tensors in a node's attributes and subgraphs and in the functions that it calls. */
  addNodeTensors(node: NodeProto): number[] {
    const bodies = [...this.#functions.find([node])].flatMap((called) => called.node);
    return [...nodeTensors([node, ...bodies])].map((tensor) => {
      const known = this.#nodeTensors.get(tensor);
      if (known !== undefined) return known;
      const index = this.all.push(createParameter([tensor], tensor.dims)) - 1;
      this.#nodeTensors.set(tensor, index);
      return index;
    });
  }
}

function createParameter(tensors: readonly TensorProto[], dims: readonly bigint[]): Parameter {
  let [bytes, elements] = [0, 0];
  for (const { dims, dataType } of tensors) {
    const count = elementCount(dims);
    bytes += rawByteLength(count, dataType) ?? 0;
    elements += count;
  }
  return { bytes, elements, runtimeBytes: Math.max(bytes, elementCount(dims) * float32Bytes) };
}

/** Whether a node is the standard Constant, which computes nothing. */
export function isConstantNode(node: NodeProto): boolean {
  return node.opType === "Constant" && isStandardDomain(node);
}

/** A node that a pipeline runs in one of its stages. */
export interface PipelineStep {
  readonly node: NodeProto;
  /** Names that the node or its subgraphs use. */
  readonly inputs: readonly string[];
  /** Those that are not parameters: inputs of the graph and outputs of other steps. */
  readonly runtimeInputs: readonly string[];
  readonly outputs: readonly string[];
  /** Indices of the parameters that the node, its subgraphs and the functions that it calls use. */
  readonly parameters: readonly number[];
}
