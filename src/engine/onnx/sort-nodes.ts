import { at } from "./at.ts";
import { nodeSubgraphs } from "./model-traversal.ts";
import { usedNames } from "./names.ts";
import type { GraphProto, NodeProto } from "./onnx_pb.js";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";

/** A graph whose nodes are being visited. */
interface OpenGraph {
  /** For each node, the nodes of the graph whose outputs it or a subgraph of it uses. */
  readonly needs: number[][];
  /** The node that is visited. */
  current: number;
}

/** What a name stands for: the output of a node, or something else, which is always there. */
interface Definition {
  readonly graph: OpenGraph;
  readonly node: number | undefined;
  /** What the name stands for around the graph. */
  readonly outer: Definition | undefined;
}

type Definitions = Map<string, Definition | undefined>;

/**
 * Checks that the nodes of a graph, and of all graphs in it, have an order in which every value is
 * computed before it is used.
 * @throws ServiceError model_invalid where nodes need each other or two have the same output
 */
export function checkOrder(graph: GraphProto): void {
  sortGraphs(graph, new Map(), () => {});
}

/**
 * Brings the nodes of a graph, and of all graphs in it, into an order in which every value is
 * computed before it is used; nodes that are in such an order stay in it.
 * @throws ServiceError model_invalid where nodes need each other or two have the same output
 */
export function sortNodes(graph: GraphProto): void {
  sortGraphs(graph, new Map(), (each, nodes) => {
    each.node = nodes;
  });
}

/** Looks at each name once, however deep the graphs are nested. */
function sortGraphs(
  graph: GraphProto,
  definitions: Definitions,
  onSorted: (graph: GraphProto, nodes: NodeProto[]) => void,
): void {
  const open = openGraph(graph);
  const names = defineNames(graph, open, definitions);
  for (const [index, node] of graph.node.entries()) {
    open.current = index;
    for (const name of node.input) addNeed(definitions.get(name));
    for (const inner of nodeSubgraphs(node)) sortGraphs(inner, definitions, onSorted);
  }
  for (const { name } of graph.output) {
    const definition = definitions.get(name);
    if (definition?.graph !== open) addNeed(definition);
  }
  forgetNames(names, definitions);
  onSorted(graph, sortByNeeds(graph.node, open.needs));
}

function addNeed(definition: Definition | undefined): void {
  if (definition?.node === undefined) return;
  definition.graph.needs[definition.graph.current]?.push(definition.node);
}

function openGraph({ node }: GraphProto): OpenGraph {
  return { needs: node.map(() => []), current: 0 };
}

/** Lets names stand again for what they stand for around the graph. */
function forgetNames(names: ReadonlySet<string>, definitions: Definitions): void {
  for (const name of names) definitions.set(name, definitions.get(name)?.outer);
}

function isOutput(definition: Definition | undefined, graph: OpenGraph): boolean {
  return definition?.graph === graph && definition.node !== undefined;
}

function createdTwiceError(name: string): ServiceError {
  return new ServiceError("model_invalid", `Value ${quoteName(name)} is created twice`);
}

/** Lets the names of a graph stand for what it defines. @returns those names */
function defineNames(graph: GraphProto, open: OpenGraph, definitions: Definitions): Set<string> {
  const names = new Set<string>();
  const define = (name: string, node: number | undefined) => {
    if (name === "") return;
    const before = definitions.get(name);
    if (node !== undefined && isOutput(before, open)) throw createdTwiceError(name);
    const outer = before?.graph === open ? before.outer : before;
    definitions.set(name, { graph: open, node, outer });
    names.add(name);
  };
  for (const { name } of [...graph.input, ...graph.initializer]) define(name, undefined);
  for (const { values } of graph.sparseInitializer) define(values?.name ?? "", undefined);
  for (const [index, { output }] of graph.node.entries()) {
    for (const name of output) define(name, index);
  }
  return names;
}

/**
 * The nodes in an order in which every value is computed before it is used; nodes that are in such
 * an order stay in it.
 * @throws ServiceError model_invalid where nodes need each other or two have the same output
 */
export function sortTopologically(nodes: readonly NodeProto[]): NodeProto[] {
  const producers = findProducers(nodes);
  const needs = nodes.map((node) =>
    [...usedNames(node)].flatMap((name) => producers.get(name) ?? []),
  );
  return sortByNeeds(nodes, needs);
}

/** Index of the node that computes each value. */
function findProducers(nodes: readonly NodeProto[]): Map<string, number> {
  const producers = new Map<string, number>();
  for (const [index, node] of nodes.entries()) {
    for (const output of node.output) {
      if (output === "") continue;
      if (producers.has(output)) {
        throw new ServiceError("model_invalid", `Value ${quoteName(output)} is created twice`);
      }
      producers.set(output, index);
    }
  }
  return producers;
}

/**
 * The nodes in an order in which each comes after those that it needs, given by their indices;
 * nodes that are in such an order stay in it.
 * @throws ServiceError model_invalid where nodes need each other
 */
function sortByNeeds(
  nodes: readonly NodeProto[],
  needs: readonly (readonly number[])[],
): NodeProto[] {
  const order: NodeProto[] = [];
  const states = new Uint8Array(nodes.length);
  const met = new Uint32Array(nodes.length);
  for (const root of nodes.keys()) visitDepthFirst({ nodes, needs, met, states, order }, root);
  return order;
}

interface Sorting {
  readonly nodes: readonly NodeProto[];
  readonly needs: readonly (readonly number[])[];
  /** How many of a node's needs are known to be in order. */
  readonly met: Uint32Array;
  /** 0: not visited, 1: waits for the nodes it needs, 2: in order */
  readonly states: Uint8Array;
  readonly order: NodeProto[];
}

/** Keeps its own stack, since graphs can be as deep as they are long. */
function visitDepthFirst(sorting: Sorting, root: number): void {
  const { nodes, states, order } = sorting;
  const stack = [root];
  for (let index = stack.at(-1); index !== undefined; index = stack.at(-1)) {
    const node = at(nodes, index);
    const missing = findMissing(sorting, index);
    if (states[index] === 2) {
      stack.pop();
    } else if (missing === undefined) {
      states[index] = 2;
      order.push(node);
      stack.pop();
    } else if (states[missing] === 1) {
      const message = `The graph has a cycle through node ${quoteName(node.name)}`;
      throw new ServiceError("model_invalid", message);
    } else {
      states[index] = 1;
      stack.push(missing);
    }
  }
}

/** The first node that a node needs and that is not in order; goes on where it stopped before. */
function findMissing({ needs, met, states }: Sorting, index: number): number | undefined {
  const own = at(needs, index);
  let place = at(met, index);
  let need = own[place];
  while (need !== undefined && states[need] === 2) need = own[++place];
  met[index] = place;
  return need;
}
