import { modelGraphs } from "./model-traversal.ts";
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
