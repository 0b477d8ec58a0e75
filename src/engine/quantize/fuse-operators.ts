import type { Recipe } from "../../contract/jobs/recipe.ts";
import { GraphIndex, type GraphValue } from "./graph-index.ts";
import { foldAfterConvolutions, foldBeforeConvolutions } from "./fold-into-convolutions.ts";
import { findGelus, fuseGelu, fuseHardSigmoid } from "./fuse-activations.ts";
import { joinAdditions } from "./join-additions.ts";
import { operatorName } from "./channel-axis.ts";
import { standardOpset } from "../onnx/node-attributes.ts";
import type { GraphProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { sortNodes } from "../onnx/sort-nodes.ts";

/** From this opset on operators broadcast as they do today. */
const leastOpset = 7;

/** One of these is in all that is fused where nothing is quantized in advance. */
const fusedOperators: ReadonlySet<string> = new Set(["Conv", "Clip"]);

interface FuseOptions {
  /** Whether operators are quantized in advance. */
  readonly isStatic: boolean;
  readonly operators: Recipe["operators"];
  /** Patterns of weights that stay as they are. */
  readonly exclude: readonly string[];
}

export interface Fused {
  /** How many operators there are less. */
  readonly operators: number;
  /** Weights and biases whose numbers others became part of. */
  readonly weights: ReadonlySet<TensorProto>;
}

/**
 * Makes fewer operators compute the same, up to the rounding of float32: what runtimes do not fuse
 * themselves, and where operators are quantized in advance also what they do, since they find no
 * pattern across QuantizeLinear and DequantizeLinear.
 */
export function fuseOperators(
  model: OnnxModel,
  { isStatic, operators, exclude }: FuseOptions,
): Fused {
  const { graph, opsetImport } = model.proto;
  const changed = new Set<TensorProto>();
  const nothing = { operators: 0, weights: changed };
  if (graph === undefined || (standardOpset(opsetImport) ?? 1) < leastOpset) return nothing;
  // Plans of large models are made many times, and language models have nothing to fuse.
  if (!isStatic && !graph.node.some((node) => fusedOperators.has(operatorName(node))))
    return nothing;
  const count = countOperators(graph);
  sortNodes(graph);
  const { values: before } = new GraphIndex(model.proto);
  if (isStatic) removeIdentities(model, graph);
  if (isStatic && operators === "contrib") fuseGelu(model, graph);
  fuseHardSigmoid(model, graph);
  const constants = isStatic ? "channels" : "numbers";
  foldAfterConvolutions(model, graph, { constants, exclude, changed });
  const kept = new Set(findGelus(model, graph).map(({ last }) => last));
  foldBeforeConvolutions(model, graph, { kept, exclude, changed });
  if (isStatic) joinAdditions(model, graph);
  dropUnused(model, graph, before);
  return { operators: count - countOperators(graph), weights: changed };
}

function countOperators(graph: GraphProto): number {
  return graph.node.filter((node) => operatorName(node) !== "Constant").length;
}

/** Removes constants that only nodes had which are no more. */
function dropUnused({ proto }: OnnxModel, graph: GraphProto, before: readonly GraphValue[]): void {
  const wasUsed = new Set(before.flatMap(({ name, uses }) => (uses.length > 0 ? [name] : [])));
  const inputs = new Set(graph.input.map(({ name }) => name));
  const unused = new GraphIndex(proto).values.filter(
    ({ name, scope, constant, uses, isOutput }) =>
      scope.body === graph &&
      constant !== undefined &&
      uses.length === 0 &&
      !isOutput &&
      wasUsed.has(name) &&
      !inputs.has(name),
  );
  const tensors = new Set(unused.map(({ constant }) => constant));
  const producers = new Set(unused.map(({ producer }) => producer));
  graph.initializer = graph.initializer.filter((tensor) => !tensors.has(tensor));
  graph.node = graph.node.filter((node) => !producers.has(node));
}

function removeIdentities({ proto }: OnnxModel, graph: GraphProto): void {
  const index = new GraphIndex(proto);
  const removed = new Set<NodeProto>();
  for (const node of graph.node) {
    const [source, result] = [node.input[0], node.output[0]];
    if (operatorName(node) !== "Identity" || source === undefined || result === undefined) continue;
    const value = index.find({ body: graph, outer: undefined }, result);
    const isLocal = value?.uses.every(({ scope }) => scope.body === graph) ?? false;
    if (value === undefined || value.isOutput || !isLocal) continue;
    for (const { node: user, input } of value.uses) user.input[input] = source;
    removed.add(node);
  }
  graph.node = graph.node.filter((node) => !removed.has(node));
}
