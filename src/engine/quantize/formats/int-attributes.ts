import { intAttribute } from "../../onnx/node-attributes.ts";
import type { AttributeProto } from "../../onnx/onnx_pb.js";

export function intAttributes(values: Readonly<Record<string, number>>): AttributeProto[] {
  return Object.entries(values).map(([name, value]) => intAttribute(name, value));
}
