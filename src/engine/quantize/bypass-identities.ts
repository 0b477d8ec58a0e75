import { nestedGraphs, nodeSubgraphs } from "../onnx/model-traversal.ts";
import type { GraphProto, NodeProto } from "../onnx/onnx_pb.js";

/** Lets the users of an Identity of an initializer or Constant take that one itself, so that its real users are seen, and drops those Identities. */
export function bypassIdentities(graph: GraphProto): void {
  const constants = new Set(graph.initializer.map(({ name }) => name));
  for (const node of graph.node)
    if (node.opType === "Constant") for (const name of node.output) constants.add(name);
  for (const { name } of graph.input) constants.delete(name);
  const graphOutputs = new Set(
    [graph, ...nestedGraphs(graph.node)].flatMap(({ output }) => output.map(({ name }) => name)),
  );
  const sources = new Map<string, string>();
  graph.node = graph.node.filter((node) => {
    const [input = ""] = node.input;
    const [output = ""] = node.output;
    const source = sources.get(input) ?? input;
    if (
      node.opType !== "Identity" ||
      node.domain !== "" ||
      !constants.has(source) ||
      graphOutputs.has(output)
    )
      return true;
    sources.set(output, source);
    return false;
  });
  graph.valueInfo = graph.valueInfo.filter(({ name }) => !sources.has(name));
  if (sources.size > 0) renameNodeInputs(graph.node, (name) => sources.get(name) ?? name);
  for (const node of graph.node) for (const inner of nodeSubgraphs(node)) bypassIdentities(inner);
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
