import { ServiceError } from "../../contract/errors.ts";
import type { NodeProto } from "./onnx_pb.js";
import { quoteName } from "../../contract/text/quote-name.ts";
import { sortByNeeds } from "./sort-by-needs.ts";
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
