import { nodeSubgraphs } from "./model-traversal.ts";
import type { GraphProto, NodeProto } from "./onnx_pb.js";

/** Names of outer values that a node uses: its inputs, and the values its subgraphs capture. */
export function usedNames(node: NodeProto): Set<string> {
  const names = new Set(node.input.filter((name) => name !== ""));
  for (const graph of nodeSubgraphs(node)) {
    for (const name of capturedNames(graph)) names.add(name);
  }
  return names;
}

/** Names that a graph uses and does not define. */
function capturedNames(graph: GraphProto): Set<string> {
  const used = new Set(graph.output.map((output) => output.name));
  const defined = new Set([
    ...graph.input.map((input) => input.name),
    ...graph.initializer.map(({ name }) => name),
  ]);
  for (const { values } of graph.sparseInitializer) if (values) defined.add(values.name);
  for (const node of graph.node) {
    for (const name of usedNames(node)) used.add(name);
    for (const name of node.output) defined.add(name);
  }
  return new Set([...used].filter((name) => !defined.has(name)));
}
