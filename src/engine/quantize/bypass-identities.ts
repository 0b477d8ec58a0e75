import { nestedGraphs, nodeSubgraphs } from "../onnx/model-traversal.ts";
import type { GraphProto, NodeProto } from "../onnx/onnx_pb.js";

/**
 * Removes each Identity of an initializer or Constant, whose users take the constant itself then:
 * findWeights sees its real users.
 */
export function bypassIdentities(graph: GraphProto): void {
  const constants = constantNames(graph);
  const graphOutputs = new Set(
    [graph, ...nestedGraphs(graph.node)].flatMap(({ output }) => output.map(({ name }) => name)),
  );
  const sources = new Map<string, string>();
  graph.node = graph.node.filter((node) => {
    const [input = ""] = node.input;
    const [output = ""] = node.output;
    const source = sources.get(input) ?? input;
    const isIdentity = node.opType === "Identity" && node.domain === "";
    if (!isIdentity || !constants.has(source) || graphOutputs.has(output)) return true;
    sources.set(output, source);
    return false;
  });
  graph.valueInfo = graph.valueInfo.filter(({ name }) => !sources.has(name));
  if (sources.size > 0) renameNodeInputs(graph.node, (name) => sources.get(name) ?? name);
  for (const node of graph.node) for (const inner of nodeSubgraphs(node)) bypassIdentities(inner);
}

function constantNames({ initializer, node, input }: GraphProto): Set<string> {
  const constantNodes = node.filter(({ opType }) => opType === "Constant");
  const names = new Set([
    ...initializer.map(({ name }) => name),
    ...constantNodes.flatMap(({ output }) => output),
  ]);
  for (const { name } of input) names.delete(name);
  return names;
}

function renameNodeInputs(nodes: readonly NodeProto[], rename: (name: string) => string): void {
  for (const node of nodes) {
    node.input = node.input.map(rename);
    for (const inner of nodeSubgraphs(node)) {
      const own = definedNames(inner);
      renameNodeInputs(inner.node, (name) => (own.has(name) ? name : rename(name)));
    }
  }
}

function definedNames(graph: GraphProto): Set<string> {
  const names = [...graph.input, ...graph.initializer].map(({ name }) => name);
  return new Set([...names, ...graph.node.flatMap((node) => node.output)]);
}
