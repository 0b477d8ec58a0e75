import { ServiceError } from "../../contract/errors.ts";
import type { NodeProto } from "./onnx_pb.js";
import { quoteName } from "../../contract/text/quote-name.ts";

/**
 * The nodes in an order in which each comes after those that it needs, given by their indices;
 * nodes that are in such an order stay in it.
 * @throws ServiceError model_invalid where nodes need each other
 */
export function sortByNeeds(
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
    const node = nodes[index];
    const missing = findMissing(sorting, index);
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

/** The first node that a node needs and that is not in order; goes on where it stopped before. */
function findMissing({ needs, met, states }: Sorting, index: number): number | undefined {
  const own = needs[index] ?? [];
  let place = met[index] ?? 0;
  while (place < own.length && states[own[place] ?? 0] === 2) place += 1;
  met[index] = place;
  return own[place];
}
