import { findAttribute } from "../onnx/node-attributes.ts";
import { nodeSubgraphs } from "../onnx/model-traversal.ts";
import type {
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  SparseTensorProto,
  TensorProto,
} from "../onnx/onnx_pb.js";

/** A graph or function body, and the scope around it whose values it may use. */
export interface Scope {
  readonly body: GraphProto | FunctionProto;
  readonly outer: Scope | undefined;
}

/** A place where a node takes a value. */
export interface ValueUse {
  readonly node: NodeProto;
  /** Index among the node's inputs. */
  readonly input: number;
  readonly scope: Scope;
}

/** The only place that takes a value, where it is in a body and the value is no output. */
export function findOnlyUse(
  value: GraphValue | undefined,
  body: Scope["body"],
): ValueUse | undefined {
  const [use, ...others] = value?.uses ?? [];
  if (use === undefined || others.length > 0 || value?.isOutput !== false) return undefined;
  return use.scope.body === body ? use : undefined;
}

/** A value of a graph: an input, an initializer or an output of a node. */
export interface GraphValue {
  readonly name: string;
  readonly scope: Scope;
  readonly producer: NodeProto | undefined;
  /** Content of an initializer or of a Constant node. */
  readonly constant: TensorProto | undefined;
  readonly sparse: SparseTensorProto | undefined;
  readonly uses: ValueUse[];
  /** Whether the value is an output of its graph or of a subgraph. */
  isOutput: boolean;
}

interface IndexedScope extends Scope {
  readonly outer: IndexedScope | undefined;
  readonly values: Map<string, GraphValue>;
}

/** Every value of a model, with its producer and consumers, and which names each body sees. */
export class GraphIndex {
  /** In the order of the model: a body's initializers first, then what its nodes compute. */
  readonly values: GraphValue[] = [];
  readonly #scopes = new Map<Scope["body"], IndexedScope>();

  constructor(model: ModelProto) {
    for (const body of [model.graph, ...model.functions]) {
      if (body !== undefined) this.#addBody(body, undefined);
    }
  }

  /** The value that a name stands for in a scope. */
  find({ body }: Scope, name: string): GraphValue | undefined {
    for (let at = this.#scopes.get(body); at !== undefined; at = at.outer) {
      const value = at.values.get(name);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  #addBody(body: Scope["body"], outer: IndexedScope | undefined): void {
    const scope: IndexedScope = { body, outer, values: new Map() };
    this.#scopes.set(body, scope);
    this.#addDefinitions(scope);
    for (const node of body.node) {
      for (const [input, name] of node.input.entries()) {
        this.find(scope, name)?.uses.push({ node, input, scope });
      }
      for (const inner of nodeSubgraphs(node)) this.#addBody(inner, scope);
    }
    for (const output of body.output) {
      const value = this.find(scope, typeof output === "string" ? output : output.name);
      if (value !== undefined) value.isOutput = true;
    }
  }

  #addDefinitions(scope: IndexedScope): void {
    const { body } = scope;
    const inputs = new Set(
      body.input.map((input) => (typeof input === "string" ? input : input.name)),
    );
    const add = (
      name: string,
      producer?: NodeProto,
      { constant, sparse }: Partial<Pick<GraphValue, "constant" | "sparse">> = {},
    ) => {
      const uses: ValueUse[] = [];
      const value = { name, scope, producer, constant, sparse, uses, isOutput: false };
      this.values.push(value);
      scope.values.set(name, value);
    };
    if (body.$typeName === "onnx.GraphProto") {
      for (const constant of body.initializer) add(constant.name, undefined, { constant });
      for (const sparse of body.sparseInitializer) {
        add(sparse.values?.name ?? "", undefined, { sparse });
      }
    }
    for (const name of inputs) if (!scope.values.has(name)) add(name);
    for (const node of body.node) {
      const constant = node.opType === "Constant" ? findAttribute(node, "value")?.t : undefined;
      for (const name of node.output) if (name !== "") add(name, node, { constant });
    }
  }
}
