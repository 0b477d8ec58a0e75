import { create } from "@bufbuild/protobuf";
import {
  type AttributeProto,
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  type ModelProto,
  type NodeProto,
  NodeProtoSchema,
} from "./onnx_pb.js";

export function findAttribute(node: NodeProto, name: string): AttributeProto | undefined {
  return node.attribute.find((attribute) => attribute.name === name);
}

export function intAttribute(name: string, value: number): AttributeProto {
  return create(AttributeProtoSchema, { name, type: AttributeType.INT, i: BigInt(value) });
}

export function intAttributes(values: Readonly<Record<string, number>>): AttributeProto[] {
  return Object.entries(values).map(([name, value]) => intAttribute(name, value));
}

export function integerListAttribute(name: string, values: readonly number[]): AttributeProto {
  const ints = values.map(BigInt);
  return create(AttributeProtoSchema, { name, type: AttributeType.INTS, ints });
}

export function floatAttribute(name: string, value: number): AttributeProto {
  return create(AttributeProtoSchema, { name, type: AttributeType.FLOAT, f: value });
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
  changes: Partial<Pick<NodeProto, "name" | "opType" | "input" | "output" | "attribute">>,
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

interface FunctionName {
  readonly domain: string;
  readonly name: string;
  readonly overload: string;
}

/** Identifies a model-local function, and the function that a node may call. */
export function functionId({ domain, name, overload }: FunctionName): string {
  return [oneDomain({ domain }), name, overload].join("\0");
}

/** The id that the function has that a node calls, if it calls one. */
export function calledFunctionId(node: Omit<FunctionName, "name"> & { opType: string }): string {
  return functionId({ ...node, name: node.opType });
}

/** Whether a node, function or import is in the domain of the standard operators. */
export function isStandardDomain({ domain }: { readonly domain: string }): boolean {
  return domain === "" || domain === "ai.onnx";
}

/** A domain by one name: that of the standard operators has two. */
export function oneDomain({ domain }: { readonly domain: string }): string {
  return isStandardDomain({ domain }) ? "" : domain;
}

/** Version of the standard operator set that a model or function imports. */
export function standardOpset(imports: ModelProto["opsetImport"]): number | undefined {
  const entry = imports.find(isStandardDomain);
  return entry === undefined ? undefined : Number(entry.version);
}
