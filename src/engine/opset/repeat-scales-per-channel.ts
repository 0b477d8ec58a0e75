import { findAttribute, intAttribute, nodeWith } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { RewriteScope } from "./rewrite-scope.ts";
import { createOperatorNode, firstOutputName } from "./opset-change.ts";

/** Repeats scale and bias of each group for the channels of the group. */
export function repeatScalesPerChannel(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const [data = "", scale = "", bias = ""] = node.input;
  const output = firstOutputName(node);
  const { names } = scope.rewrite;
  const counts = {
    channels: names.allocate(`${output}_channels`),
    perGroup: names.allocate(`${output}_channels_per_group`),
    repeats: names.allocate(`${output}_repeats`),
  };
  const shapes = {
    column: scope.addInt64Constant([-1, 1], `${output}_column`),
    flat: scope.addInt64Constant([-1], `${output}_flat`),
    repeats: counts.repeats,
  };
  const counting = countChannelsPerGroup(node, counts, scope);
  const scales = repeatEach(scale, shapes, scope);
  const biases = repeatEach(bias, shapes, scope);
  return [
    ...counting,
    ...scales.nodes,
    ...biases.nodes,
    nodeWith(node, { input: [data, scales.output, biases.output] }),
  ];
}

/** Nodes that compute values of these names: `repeats` is the shape of a column of each group. */
function countChannelsPerGroup(
  node: NodeProto,
  { channels, perGroup, repeats }: Record<"channels" | "perGroup" | "repeats", string>,
  scope: RewriteScope,
): NodeProto[] {
  const [data = ""] = node.input;
  const groups = findAttribute(node, "num_groups") ?? intAttribute("num_groups", 1);
  const count = scope.addAttributeConstant(node, groups);
  const one = scope.addInt64Constant([1], `${firstOutputName(node)}_one`);
  const channelAxis = [intAttribute("start", 1), intAttribute("end", 2)];
  return [
    createOperatorNode("Shape", [data], channels, channelAxis),
    createOperatorNode("Div", [channels, count], perGroup),
    createOperatorNode("Concat", [one, perGroup], repeats, [intAttribute("axis", 0)]),
  ];
}

/** Repeats each element of a vector, by way of shapes of these names. */
function repeatEach(
  input: string,
  { column, repeats, flat }: Record<"column" | "repeats" | "flat", string>,
  { rewrite: { names } }: RewriteScope,
): { nodes: NodeProto[]; output: string } {
  const upright = names.allocate(`${input}_column`);
  const repeated = names.allocate(`${input}_repeated`);
  const output = names.allocate(`${input}_channels`);
  const nodes = [
    createOperatorNode("Reshape", [input, column], upright),
    createOperatorNode("Expand", [upright, repeats], repeated),
    createOperatorNode("Reshape", [repeated, flat], output),
  ];
  return { nodes, output };
}
