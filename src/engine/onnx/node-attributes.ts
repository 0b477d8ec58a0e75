import { create } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
} from "./onnx_pb.js";
import type { AttributeProto, NodeProto } from "./onnx_pb.js";

export function findAttribute(node: NodeProto, name: string): AttributeProto | undefined {
  return node.attribute.find((attribute) => attribute.name === name);
}

export function intAttribute(name: string, value: number): AttributeProto {
  return create(AttributeProtoSchema, { name, type: AttributeType.INT, i: BigInt(value) });
}

export function stringAttribute(name: string, value: string): AttributeProto {
  return create(AttributeProtoSchema, {
    name,
    type: AttributeType.STRING,
    s: new TextEncoder().encode(value),
  });
}

export function attributeText(attribute: AttributeProto): string {
  return new TextDecoder().decode(attribute.s);
}

/** A shallow copy of a node with other fields. */
export function nodeWith(
  node: NodeProto,
  changes: { opType?: string; input?: string[]; output?: string[]; attribute?: AttributeProto[] },
): NodeProto {
  return Object.assign(create(NodeProtoSchema), node, changes);
}

export function attributesWithout(node: NodeProto, ...names: readonly string[]): AttributeProto[] {
  return node.attribute.filter(({ name }) => !names.includes(name));
}

/** The attributes of a node with one set. */
export function attributesWith(node: NodeProto, attribute: AttributeProto): AttributeProto[] {
  return [...attributesWithout(node, attribute.name), attribute];
}
