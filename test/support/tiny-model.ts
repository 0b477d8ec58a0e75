import { writeFile } from "node:fs/promises";
import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType,
  ModelProtoSchema,
  TensorProto_DataType,
  type AttributeProtoSchema,
  type FunctionProtoSchema,
  type GraphProtoSchema,
  type NodeProtoSchema,
  type TensorProtoSchema,
  type ValueInfoProtoSchema,
} from "../../src/engine/onnx/onnx_pb.js";

type Dimension = number | string;

/** A float tensor of a graph's signature; strings are names of open dimensions. */
export function tensorInfo(
  name: string,
  shape: readonly Dimension[],
  elemType: number = TensorProto_DataType.FLOAT,
): MessageInitShape<typeof ValueInfoProtoSchema> {
  const dim = shape.map((size) => ({
    value:
      typeof size === "number"
        ? { case: "dimValue" as const, value: BigInt(size) }
        : { case: "dimParam" as const, value: size },
  }));
  return { name, type: { value: { case: "tensorType", value: { elemType, shape: { dim } } } } };
}

/** A float initializer. */
export function floatInitializer(
  name: string,
  dims: readonly number[],
  content: (index: number) => number,
): MessageInitShape<typeof TensorProtoSchema> {
  const elements = Float32Array.from(
    { length: dims.reduce((product, size) => product * size, 1) },
    (_, index) => content(index),
  );
  return {
    name,
    dims: dims.map(BigInt),
    dataType: TensorProto_DataType.FLOAT,
    rawData: new Uint8Array(elements.buffer),
  };
}

/** A node such as `node("MatMul", ["x", "w"], ["y"])`. */
export function node(
  opType: string,
  input: string[],
  output: string[],
  attribute: MessageInitShape<typeof AttributeProtoSchema>[] = [],
): MessageInitShape<typeof NodeProtoSchema> {
  return { opType, input, output, attribute };
}

export function integerAttribute(
  name: string,
  i: number,
): MessageInitShape<typeof AttributeProtoSchema> {
  return { name, type: AttributeProto_AttributeType.INT, i: BigInt(i) };
}

export function graphAttribute(
  name: string,
  g: MessageInitShape<typeof GraphProtoSchema>,
): MessageInitShape<typeof AttributeProtoSchema> {
  return { name, type: AttributeProto_AttributeType.GRAPH, g: { name, ...g } };
}

interface TinyModelOptions {
  opset?: number;
  irVersion?: number;
  functions?: MessageInitShape<typeof FunctionProtoSchema>[];
  domains?: string[];
}

/** Writes a model of opset 17 with the given graph. */
export async function writeTinyModel(
  path: string,
  graph: MessageInitShape<typeof GraphProtoSchema>,
  { opset = 17, irVersion, functions = [], domains = [] }: TinyModelOptions = {},
): Promise<void> {
  const model = create(ModelProtoSchema, {
    irVersion: BigInt(irVersion ?? (opset >= 21 ? 10 : 8)),
    opsetImport: [
      { domain: "", version: BigInt(opset) },
      ...domains.map((domain) => ({ domain, version: 1n })),
    ],
    functions,
    graph: { name: "tiny", ...graph },
  });
  await writeFile(path, toBinary(ModelProtoSchema, model));
}
