import { ServiceError } from "../../contract/errors.ts";
import { nodeSubgraphs } from "./model-traversal.ts";
import type { GraphProto, NodeProto } from "./onnx_pb.js";
import { quoteName } from "../../contract/text/quote-name.ts";
import { sortByNeeds } from "./sort-by-needs.ts";

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
