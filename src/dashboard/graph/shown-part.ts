import {
  type ModelGraph,
  modelGraphLimits,
  type ModelGraphNode,
  type ModelGraphPart,
  type ModelGraphWeight,
} from "../../contract/jobs/model-graph.ts";
import { truncate } from "../../contract/text/truncate.ts";

/** Whether a graph is the original's or the result's. */
export type GraphSide = "original" | "result";

/** The graph of a side. Nodes of the result have the weights of the original's of their name. */
export function chooseSide(
  { graph, result, weights }: ModelGraph,
  side: GraphSide,
): Pick<ModelGraph, "graph" | "weights"> {
  if (side === "original" || result === undefined) return { graph, weights };
  const known = new Map<string, readonly number[]>();
  const read = ({ nodes }: ModelGraphPart) => {
    for (const { name, weights: own, subgraphs } of nodes) {
      known.set(name, own);
      for (const part of subgraphs) read(part);
    }
  };
  const attach = (part: ModelGraphPart): ModelGraphPart => ({
    ...part,
    nodes: putBesideTakers(part).map((node) => ({
      ...node,
      weights: [...(known.get(node.name) ?? [])],
      subgraphs: node.subgraphs.map(attach),
    })),
  });
  read(graph);
  return { graph: attach(result), weights };
}

/** Which graph of a model is shown: from the outermost, the nodes whose subgraphs lead there. */
export type GraphPath = readonly { readonly node: number; readonly subgraph: number }[];

/**
 * The nodes of a graph in an order in which those that compute with constants only, such as what
 * restores a weight, come right before the first node that takes it.
 */
function putBesideTakers({ inputs, nodes }: ModelGraphPart): ModelGraphNode[] {
  const flowing = new Set(inputs);
  const waiting = new Map<number, number>();
  const ordered: number[] = [];
  for (const [position, node] of nodes.entries()) {
    const taken = listTaken(node);
    const outputs = node.outputs.flatMap((value) => value ?? []);
    if (!taken.some((value) => flowing.has(value))) {
      for (const value of outputs) waiting.set(value, position);
      continue;
    }
    for (const value of outputs) flowing.add(value);
    ordered.push(...takeWaiting(taken), position);
  }
  const left = new Set(waiting.values());
  return [...ordered, ...[...left].toSorted((a, b) => a - b)].flatMap((each) => nodes[each] ?? []);

  /** What the values come from that still waits, in the order of the graph. */
  function takeWaiting(taken: readonly number[]): number[] {
    const found = new Set<number>();
    const open = [...taken];
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      const giver = waiting.get(value);
      const node = nodes[giver ?? -1];
      if (giver === undefined || node === undefined) continue;
      for (const output of node.outputs) if (output !== null) waiting.delete(output);
      found.add(giver);
      open.push(...listTaken(node));
    }
    return [...found].toSorted((a, b) => a - b);
  }
}

function listTaken({ inputs, captured }: ModelGraphNode): number[] {
  return [...inputs.flatMap((value) => value ?? []), ...captured];
}

/** A graph of a model, or the first of these names that a node or weight of it has. */
export type GraphPlace = GraphPath | { readonly names: readonly string[] };

/** One graph of a model as it is drawn; its inputs and outputs are drawn as nodes are. */
export interface ShownPart {
  readonly nodes: readonly ShownNode[];
  readonly values: ModelGraphPart["values"];
  readonly weights: readonly ModelGraphWeight[];
  /** What each graph on the way to this one is called. */
  readonly trail: readonly string[];
}

type DrawnModel = Pick<ModelGraph, "graph" | "weights">;

export interface ShownNode {
  /** Whether the operator is in the model, or stands for a value from outside or for the outside. */
  readonly kind: "input" | "node" | "output";
  readonly name: string;
  readonly opType: string;
  /** Positions of the drawn nodes whose values it takes, each once. */
  readonly inputs: readonly number[];
  readonly takes: readonly TakenValue[];
  readonly gives: readonly GivenValue[];
  readonly attributes: readonly ModelGraphNode["attributes"][number][];
  readonly weights: readonly number[];
  readonly subgraphs: readonly { readonly name: string; readonly nodes: number }[];
}

interface TakenValue {
  readonly value: number;
  /** The drawn node that gives it; a constant has none. */
  readonly from: number | undefined;
}

interface GivenValue {
  readonly value: number;
  readonly to: readonly number[];
}

/** The graph at the end of a path. */
export function listShownPart({ graph, weights }: DrawnModel, path: GraphPath): ShownPart {
  const trail = ["Model"];
  let part = graph;
  for (const { node, subgraph } of path) {
    // The nodes of a graph are drawn behind its inputs.
    const entered = part.nodes[node - part.inputs.length];
    const inner = entered?.subgraphs[subgraph];
    if (entered === undefined || inner === undefined) throw new Error("No such subgraph");
    trail.push(`${entered.opType}, ${inner.name}`);
    part = inner;
  }
  return { nodes: listNodes(part), values: part.values, weights, trail };
}

/** Where a node is that has a name, or computes with a weight of that name. */
export interface NodePlace {
  readonly path: GraphPath;
  /** Its position among the drawn nodes of the graph at the end of the path. */
  readonly node: number;
}

/** The first node of a name, or with a weight of that name, as deep as it is in subgraphs. */
export function findNode({ graph, weights }: DrawnModel, name: string): NodePlace | undefined {
  const shown = truncate(name, modelGraphLimits.text);
  const weight = weights.findIndex((each) => each.name === shown);
  const isWanted = (node: ModelGraphNode) => node.name === shown || node.weights.includes(weight);
  return findIn(graph, []);

  function findIn(part: ModelGraphPart, path: GraphPath): NodePlace | undefined {
    for (const [index, node] of part.nodes.entries()) {
      const position = part.inputs.length + index;
      for (const [subgraph, inner] of node.subgraphs.entries()) {
        const found = findIn(inner, [...path, { node: position, subgraph }]);
        if (found !== undefined) return found;
      }
      if (isWanted(node)) return { path, node: position };
    }
    return undefined;
  }
}

type Outline = Omit<ShownNode, "inputs" | "takes" | "gives"> & {
  readonly taken: readonly number[];
  readonly given: readonly number[];
};

function listNodes(part: ModelGraphPart): ShownNode[] {
  const outlines = [
    ...part.inputs.map((value) => outlineEnd(part, "input", value)),
    ...part.nodes.map(outlineNode),
    ...part.outputs.map((value) => outlineEnd(part, "output", value)),
  ];
  const givers = new Map<number, number>();
  const takers = new Map<number, number[]>();
  for (const [position, { given, taken }] of outlines.entries()) {
    for (const value of given) givers.set(value, position);
    for (const value of new Set(taken)) {
      const known = takers.get(value);
      if (known === undefined) takers.set(value, [position]);
      else known.push(position);
    }
  }
  return outlines.map(({ taken, given, ...outline }) => {
    const takes = taken.map((value) => ({ value, from: givers.get(value) }));
    return {
      ...outline,
      takes,
      inputs: [...new Set(takes.flatMap(({ from }) => from ?? []))],
      gives: given.map((value) => ({ value, to: takers.get(value) ?? [] })),
    };
  });
}

const plain = { attributes: [], weights: [], subgraphs: [] } as const;

function outlineEnd(part: ModelGraphPart, kind: "input" | "output", value: number): Outline {
  const name = part.values[value]?.name ?? "";
  const ends = kind === "input" ? { taken: [], given: [value] } : { taken: [value], given: [] };
  return { ...plain, kind, name, opType: kind === "input" ? "Input" : "Output", ...ends };
}

function outlineNode(node: ModelGraphNode): Outline {
  const { name, opType, attributes, weights } = node;
  return {
    kind: "node",
    name,
    opType,
    attributes,
    weights,
    subgraphs: node.subgraphs.map((part) => ({ name: part.name, nodes: part.nodes.length })),
    taken: listTaken(node),
    given: node.outputs.flatMap((value) => value ?? []),
  };
}
