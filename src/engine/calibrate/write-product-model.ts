import { writeFile } from "node:fs/promises";
import path from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { intAttribute } from "../onnx/node-attributes.ts";
import {
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  TensorProto_DataType as DataType,
  ValueInfoProtoSchema,
} from "../onnx/onnx_pb.js";

/** Writes a model that adds products of the columns of `a` and `b` to `c`. @returns its path */
export async function writeProductModel(folder: string): Promise<string> {
  const file = path.join(folder, "products.onnx");
  const attribute = [intAttribute("transA", 1)];
  const product = { opType: "Gemm", input: ["a", "b", "c"], output: ["y"], attribute };
  const graph = create(GraphProtoSchema, {
    name: "products",
    node: [create(NodeProtoSchema, product)],
    input: [
      describeMatrix("a", ["rows", "left"]),
      describeMatrix("b", ["rows", "right"]),
      describeMatrix("c", ["left", "right"]),
    ],
    output: [describeMatrix("y", ["left", "right"])],
  });
  const opsetImport = [{ domain: "", version: 13n }];
  const model = create(ModelProtoSchema, { irVersion: 8n, opsetImport, graph });
  await writeFile(file, toBinary(ModelProtoSchema, model));
  return file;
}

function describeMatrix(name: string, dims: readonly string[]) {
  const dim = dims.map((dimParam) => ({ value: { case: "dimParam" as const, value: dimParam } }));
  const value = {
    case: "tensorType" as const,
    value: { elemType: DataType.FLOAT, shape: { dim } },
  };
  return create(ValueInfoProtoSchema, { name, type: { value } });
}
