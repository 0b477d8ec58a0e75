import type { ModelGraphNode } from "../../contract/jobs/model-graph.ts";

/** Nodes in a row of which each feeds the next one alone, shown as one. */
export interface Block {
  /** Positions of its nodes, in the order of the graph. */
  readonly nodes: readonly number[];
  /** Positions of the blocks that its first node takes outputs of; they come before it. */
  readonly inputs: readonly number[];
}

/** More nodes of a row begin another block. */
const maxBlockNodes = 12;

/** Folds the nodes of a graph into blocks, in an order in which each comes behind its inputs. */
export function foldChains(nodes: readonly Pick<ModelGraphNode, "inputs">[]): Block[] {
  // ONNX files are sorted: other edges would be circles.
  const inputs = nodes.map((node, position) => node.inputs.filter((each) => each < position));
  const consumers = new Uint32Array(nodes.length);
  for (const each of inputs) {
    for (const input of each) consumers[input] = (consumers[input] ?? 0) + 1;
  }
  const blocks: { nodes: number[]; inputs: number[] }[] = [];
  const blockAt = new Uint32Array(nodes.length);
  for (const [position, taken] of inputs.entries()) {
    const [before, ...others] = taken;
    const isAlone = before !== undefined && others.length === 0 && consumers[before] === 1;
    const row = isAlone ? blocks[blockAt[before] ?? 0] : undefined;
    if (row !== undefined && row.nodes.length < maxBlockNodes) {
      blockAt[position] = blockAt[before ?? 0] ?? 0;
      row.nodes.push(position);
    } else {
      blockAt[position] = blocks.length;
      const sources = new Set(taken.map((each) => blockAt[each] ?? 0));
      blocks.push({ nodes: [position], inputs: [...sources] });
    }
  }
  return blocks;
}
