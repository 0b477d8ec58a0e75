import { nestedGraphs } from "./onnx/model-traversal.ts";
import type { NodeProto } from "./onnx/onnx_pb.js";
import type { Weight } from "./quantize/find-weights.ts";

/** A node of a model's graph with what it takes, by positions among nodes and weights. */
export interface GraphNode {
  /** The name of its first output where the node has none. */
  readonly name: string;
  readonly opType: string;
  /** Nodes whose outputs it takes, each once. */
  readonly inputs: readonly number[];
  readonly weights: readonly number[];
}

/** The nodes of a graph but constants; each stands for the nodes of its subgraphs too. */
export function listGraphNodes(
  graph: readonly NodeProto[],
  weights: readonly Weight[],
): GraphNode[] {
  const shown = graph.filter(({ opType }) => opType !== "Constant");
  const positions = new Map<NodeProto, number>();
  const producers = new Map<string, number>();
  for (const [position, node] of shown.entries()) {
    for (const each of withNestedNodes(node)) positions.set(each, position);
    for (const output of node.output) if (output !== "") producers.set(output, position);
  }
  const found = listNodeWeights(weights, positions);
  return shown.map((node, position) => ({
    name: node.name || (node.output[0] ?? ""),
    opType: node.opType,
    inputs: listTaken(node, position, producers),
    weights: [...(found.get(position) ?? [])],
  }));
}

function* withNestedNodes(node: NodeProto): Generator<NodeProto> {
  yield node;
  for (const graph of nestedGraphs([node])) yield* graph.node;
}

/** A node of a subgraph may take values of the graph around it. */
function listTaken(
  node: NodeProto,
  position: number,
  producers: ReadonlyMap<string, number>,
): number[] {
  const inputs = new Set<number>();
  for (const { input } of withNestedNodes(node)) {
    for (const name of input) {
      const producer = producers.get(name);
      if (producer !== undefined && producer !== position) inputs.add(producer);
    }
  }
  return [...inputs];
}

function listNodeWeights(
  weights: readonly Weight[],
  positions: ReadonlyMap<NodeProto, number>,
): ReadonlyMap<number, ReadonlySet<number>> {
  const found = new Map<number, Set<number>>();
  for (const { index, consumers } of weights) {
    for (const { node } of consumers) {
      const position = positions.get(node);
      if (position === undefined) continue;
      found.set(position, (found.get(position) ?? new Set()).add(index));
    }
  }
  return found;
}
