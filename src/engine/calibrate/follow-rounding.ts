import { at } from "../onnx/at.ts";
import { UniqueNames } from "../onnx/names.ts";
import { attributesWithout, nodeWith } from "../onnx/node-attributes.ts";
import type { ModelProto, NodeProto } from "../onnx/onnx_pb.js";
import type { InputGroup, Product } from "./input-groups.ts";

interface FollowedRounding {
  /** The graph's nodes once more, as far as they follow from rounded products. */
  readonly nodes: readonly NodeProto[];
  /** Inputs of products that follow from rounded ones, by their group. */
  readonly inputs: ReadonlyMap<InputGroup, string>;
  /** Names of the rounded weights that the nodes take. */
  readonly weights: ReadonlyMap<Product, string>;
}

/**
 * Computes the inputs of products again as they are when the products before them are rounded. These
 * take the original's inputs themselves: errors are followed from one product to the next, so that
 * any depth of a model needs two runs only. On MiniLM in 4 bits that has the accuracy of rounding
 * one layer after the other, 0.6 dB of SQNR more than without.
 * @param canRound whether a weight's rounded values are known
 */
export function followRounding(
  model: ModelProto,
  groups: readonly InputGroup[],
  canRound: (product: Product) => boolean,
): FollowedRounding {
  const names = UniqueNames.forModel(model);
  const products = new Map(
    groups.flatMap((group) => group.products.map((product) => [product.node, { group, product }])),
  );
  const observed = new Set(groups.flatMap(({ values }) => values));
  const copies = new Map<string, Copy>();
  const inputs = new Map<InputGroup, string>();
  const rounded = new Map<NodeProto, Product>();
  const copyNode = (node: NodeProto, changes: Parameters<typeof nodeWith>[1]) => {
    const output = node.output.map((name) => name && names.allocate(`${name}_followed`));
    const copy = nodeWith(node, { ...changes, name: "", output });
    for (const [index, name] of node.output.entries()) {
      if (name !== "") copies.set(name, { name: at(output, index), node: copy });
    }
    return copy;
  };
  for (const node of model.graph?.node ?? []) {
    const { group, product } = products.get(node) ?? {};
    if (group === undefined || product === undefined) {
      const follow = (name: string) =>
        (observed.has(name) ? undefined : copies.get(name)?.name) ?? name;
      const input = node.input.map(follow);
      if (input.some((name, index) => name !== node.input[index])) copyNode(node, { input });
      continue;
    }
    const value = copies.get(at(node.input, 0));
    if (value !== undefined && group.isFollowed) inputs.set(group, value.name);
    else if (product.isWhole && canRound(product)) {
      const weight = names.allocate(`${at(node.input, 1)}_rounded`);
      const input = [at(node.input, 0), weight, ...node.input.slice(2)];
      const attribute = attributesWithout(node, "transB");
      rounded.set(copyNode(node, { input, attribute }), product);
    }
  }
  const nodes = takeNeeded([...inputs.values()], copies);
  const weights = nodes.flatMap((node) => {
    const product = rounded.get(node);
    return product === undefined ? [] : [[product, at(node.input, 1)] as const];
  });
  return { nodes, inputs, weights: new Map(weights) };
}

interface Copy {
  readonly name: string;
  readonly node: NodeProto;
}

/** The copies that values need, in their order. */
function takeNeeded(values: readonly string[], copies: ReadonlyMap<string, Copy>): NodeProto[] {
  const producers = new Map(Array.from(copies.values(), ({ name, node }) => [name, node]));
  const needed = new Set<NodeProto>();
  const waiting = [...values];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const node = producers.get(name);
    if (node === undefined || needed.has(node)) continue;
    needed.add(node);
    waiting.push(...node.input);
  }
  const ordered = Array.from(copies.values(), ({ node }) => node);
  return [...new Set(ordered)].filter((node) => needed.has(node));
}
