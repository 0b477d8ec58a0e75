import type { NodeProto } from "../onnx/onnx_pb.js";
import { isStandardDomain } from "../onnx/node-attributes.ts";

/** Whether a node is the standard Constant, which computes nothing. */
export function isConstantNode(node: NodeProto): boolean {
  return node.opType === "Constant" && isStandardDomain(node);
}
