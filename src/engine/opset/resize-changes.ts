import { attributeText, findAttribute, nodeWith } from "../onnx/node-attributes.ts";
import type { NodeProto } from "../onnx/onnx_pb.js";
import { readFloat32Elements } from "../onnx/read-tensor.ts";
import type { RewriteScope } from "./rewrite-scope.ts";
import { firstOutputName, opsetUnsupportedError, withStringAttribute } from "./opset-change.ts";

/** Opset 10 leaves the coordinate transformation open; ONNX Runtime's is asymmetric. */
export function resizeAsymmetric(node: NodeProto, scope: RewriteScope): NodeProto[] {
  const [data = "", scales = ""] = node.input;
  const transformed = withStringAttribute(node, "coordinate_transformation_mode", "asymmetric");
  const mode = findAttribute(node, "mode");
  const resized = nodeWith(transformed, {
    input: [data, scope.addFloat32Constant([], `${firstOutputName(node)}_roi`), scales],
  });
  if (mode !== undefined && attributeText(mode) !== "nearest") return [resized];
  return [withStringAttribute(resized, "nearest_mode", nearestMode(node, scales, scope))];
}

/** ONNX Runtime's nearest pixel of opset 10: the floor where an axis grows, else the ceiling. */
function nearestMode(node: NodeProto, scales: string, scope: RewriteScope): "floor" | "ceil" {
  const constant = scope.values.find(scales)?.constant;
  const factors = constant && readFloat32Elements(constant);
  if (factors === undefined) throw opsetUnsupportedError(node, "computes its scales");
  if (factors.every((factor) => factor >= 1)) return "floor";
  if (factors.every((factor) => factor <= 1)) return "ceil";
  throw opsetUnsupportedError(node, "both enlarges and shrinks");
}

export function sizesInsteadOfScales(node: NodeProto): NodeProto[] {
  const transformation = findAttribute(node, "coordinate_transformation_mode");
  if (
    transformation &&
    (transformation.refAttrName !== "" || attributeText(transformation) === "tf_half_pixel_for_nn")
  ) {
    throw opsetUnsupportedError(
      node,
      'may have the coordinate_transformation_mode "tf_half_pixel_for_nn"',
    );
  }
  const [data = "", roi = "", , sizes = ""] = node.input;
  return [sizes === "" ? node : nodeWith(node, { input: [data, roi, "", sizes] })];
}
