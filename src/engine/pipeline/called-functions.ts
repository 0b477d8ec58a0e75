import { calledFunctionId, functionId } from "../onnx/node-attributes.ts";
import { nestedGraphs } from "../onnx/model-traversal.ts";
import type { FunctionProto, ModelProto, NodeProto } from "../onnx/onnx_pb.js";

/** The functions of a model by the nodes that call them. */
export class CalledFunctions {
  readonly #byId: ReadonlyMap<string, FunctionProto>;
  /** Functions that the nodes of a function call themselves. */
  readonly #callees = new Map<FunctionProto, ReadonlySet<FunctionProto>>();

  constructor({ functions }: ModelProto) {
    this.#byId = new Map(functions.map((body) => [functionId(body), body]));
  }

  /** Functions that nodes call, directly or through others. */
  find(nodes: readonly NodeProto[]): Set<FunctionProto> {
    const found = this.#findDirect(nodes);
    // A set goes on to what is added to it.
    for (const body of found) {
      const callees = this.#callees.get(body) ?? this.#findDirect(body.node);
      this.#callees.set(body, callees);
      for (const callee of callees) found.add(callee);
    }
    return found;
  }

  #findDirect(nodes: readonly NodeProto[]): Set<FunctionProto> {
    const found = new Set<FunctionProto>();
    if (this.#byId.size === 0) return found;
    const add = (node: NodeProto) => {
      const called = this.#byId.get(calledFunctionId(node));
      if (called !== undefined) found.add(called);
    };
    nodes.forEach(add);
    for (const graph of nestedGraphs(nodes)) graph.node.forEach(add);
    return found;
  }
}
