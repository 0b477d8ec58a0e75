import { nodeTensors } from "../onnx/model-traversal.ts";
import type { GraphProto, ModelProto, NodeProto } from "../onnx/onnx_pb.js";
import { sortTopologically } from "../onnx/sort-nodes.ts";
import { usedNames } from "../onnx/names.ts";
import { isConstantNode } from "./constant-node.ts";
import { deferParameterSteps } from "./defer-parameter-steps.ts";
import { ParameterIndex } from "./parameter-index.ts";
import type { PipelineStep } from "./pipeline-step.ts";

/**
 * A model's graph as a pipeline uses it. Initializers and Constant nodes are no steps: each stage
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
