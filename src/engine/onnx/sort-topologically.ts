import { ServiceError } from "../../contract/errors.ts";
import type { NodeProto } from "./onnx_pb.js";
import { quoteName } from "./quote-name.ts";
import { usedNames } from "./used-names.ts";

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
  const order: NodeProto[] = [];
  const states = new Uint8Array(nodes.length);
  for (const root of nodes.keys()) visitDepthFirst({ nodes, needs, states, order }, root);
  return order;
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

interface Sorting {
  readonly nodes: readonly NodeProto[];
  readonly needs: readonly (readonly number[])[];
  /** 0: not visited, 1: waits for the nodes it needs, 2: in order */
  readonly states: Uint8Array;
  readonly order: NodeProto[];
}

/** Keeps its own stack, since graphs can be as deep as they are long. */
function visitDepthFirst({ nodes, needs, states, order }: Sorting, root: number): void {
  const stack = [root];
  for (let index = stack.at(-1); index !== undefined; index = stack.at(-1)) {
    const node = nodes[index];
    const missing = needs[index]?.find((need) => states[need] !== 2);
    if (node === undefined || states[index] === 2) {
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
