import { modelGraphs, nodeSubgraphs } from "./model-traversal.ts";
import type { GraphProto, ModelProto, NodeProto } from "./onnx_pb.js";

/** Allocates names that no value and no node of a model has, in any graph or function. */
export class UniqueNames {
  readonly #used: Set<string>;
  readonly #tries = new Map<string, number>();

  constructor(used: Iterable<string>) {
    this.#used = new Set(used);
  }

  static forModel(model: ModelProto): UniqueNames {
    return new UniqueNames(modelNames(model));
  }

  /** `base` where it is free, else `base_1`, `base_2` and so on. */
  allocate(base: string): string {
    let name = base;
    let tries = this.#tries.get(base) ?? 0;
    while (this.#used.has(name)) name = `${base}_${++tries}`;
    this.#tries.set(base, tries);
    this.#used.add(name);
    return name;
  }
}

function* modelNames(model: ModelProto): Generator<string> {
  for (const graph of modelGraphs(model)) yield* graphNames(graph);
  for (const body of model.functions) {
    yield* body.input;
    yield* body.output;
    yield* nodeNames(body.node);
  }
}

function* graphNames(graph: GraphProto): Generator<string> {
  for (const list of [graph.input, graph.output, graph.valueInfo, graph.initializer]) {
    for (const { name } of list) yield name;
  }
  for (const { values } of graph.sparseInitializer) if (values !== undefined) yield values.name;
  yield* nodeNames(graph.node);
}

function* nodeNames(nodes: readonly NodeProto[]): Generator<string> {
  for (const node of nodes) {
    yield node.name;
    yield* node.input;
    yield* node.output;
  }
}

/** Names of outer values that a node uses: its inputs, and the values its subgraphs capture. */
export function usedNames(node: NodeProto): Set<string> {
  const names = new Set(node.input.filter((name) => name !== ""));
  const subgraphs = nodeSubgraphs(node);
  if (subgraphs.length > 0) {
    const collecting: Collecting = { captured: names, defined: new Map() };
    for (const graph of subgraphs) collectCaptured(graph, collecting);
  }
  return names;
}

interface Collecting {
  readonly captured: Set<string>;
  /** How many of the subgraphs around the place that is looked at define each name. */
  readonly defined: Map<string, number>;
}

/** Adds the names that a graph uses and that neither it nor a subgraph around it defines. */
function collectCaptured(graph: GraphProto, collecting: Collecting): void {
  const { captured, defined } = collecting;
  const own = new Set(listDefinitions(graph));
  for (const name of own) defined.set(name, (defined.get(name) ?? 0) + 1);
  const use = (name: string) => {
    if (name !== "" && (defined.get(name) ?? 0) === 0) captured.add(name);
  };
  for (const { name } of graph.output) use(name);
  for (const node of graph.node) {
    node.input.forEach(use);
    for (const inner of nodeSubgraphs(node)) collectCaptured(inner, collecting);
  }
  for (const name of own) defined.set(name, (defined.get(name) ?? 0) - 1);
}

function* listDefinitions(graph: GraphProto): Generator<string> {
  for (const { name } of graph.input) yield name;
  for (const { name } of graph.initializer) yield name;
  for (const { values } of graph.sparseInitializer) if (values) yield values.name;
  for (const { output } of graph.node) yield* output;
}
