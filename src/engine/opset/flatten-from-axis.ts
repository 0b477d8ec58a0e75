import { attributesWith, findAttribute, intAttribute, nodeWith } from "../onnx/node-attributes.ts";
import type { AttributeProto, NodeProto } from "../onnx/onnx_pb.js";
import type { RewriteScope } from "./rewrite-scope.ts";
import { createOperatorNode, firstOutputName } from "./opset-change.ts";

/** Before opset 13 the axes from `axis` on were one; the new node gets the flattened value. */
export function flattenFromAxis(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const axis = findAttribute(node, "axis") ?? intAttribute("axis", 1);
  const rank = scope.values.find(node.input[0] ?? "")?.rank;
  const isLast = axis.i === -1n || (rank !== undefined && Number(axis.i) === rank - 1);
  if (!isLast || axis.refAttrName !== "") return flattenAround(node, axis, scope);
  return [nodeWith(node, { attribute: attributesWith(node, intAttribute("axis", -1)) })];
}

/** The node on its flattened input, and a Reshape of its output back to the input's shape. */
function flattenAround(node: NodeProto, axis: AttributeProto, scope: RewriteScope): NodeProto[] {
  const { names, targetOpset } = scope.rewrite;
  const [data = ""] = node.input;
  const output = firstOutputName(node);
  const shape = names.allocate(`${output}_shape`);
  const flat = names.allocate(`${data}_flat`);
  const result = names.allocate(`${output}_flat`);
  const attribute = attributesWith(node, intAttribute("axis", -1));
  const reshaping = targetOpset >= 14 ? [intAttribute("allowzero", 1)] : [];
  return [
    createOperatorNode("Shape", [data], shape),
    createOperatorNode("Flatten", [data], flat, [axis]),
    nodeWith(node, { input: [flat], output: [result], attribute }),
    createOperatorNode("Reshape", [result, shape], output, reshaping),
  ];
}
