import { create } from "@bufbuild/protobuf";
import { intAttribute } from "../../onnx/node-attributes.ts";
import { AttributeProto_AttributeType, AttributeProtoSchema } from "../../onnx/onnx_pb.js";
import type { AttributeProto } from "../../onnx/onnx_pb.js";

export function intAttributes(values: Readonly<Record<string, number>>): AttributeProto[] {
  return Object.entries(values).map(([name, value]) => intAttribute(name, value));
}

export function integerListAttribute(name: string, values: readonly number[]): AttributeProto {
  const ints = values.map(BigInt);
  return create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INTS, ints });
}
