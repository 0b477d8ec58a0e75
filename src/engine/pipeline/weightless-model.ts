import { clone, create } from "@bufbuild/protobuf";
import { elementTypeName } from "../onnx/element-type.ts";
import { graphsAndFunctions } from "../onnx/model-traversal.ts";
import {
  AttributeProto_AttributeType,
  ModelProtoSchema,
  NodeProtoSchema,
  TensorProto_DataType,
  TensorProtoSchema,
} from "../onnx/onnx_pb.js";
import type { NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { payloadIndex } from "../onnx/payload.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { UniqueNames } from "../onnx/unique-names.ts";
import { isConstant } from "./pipeline-graph.ts";

/** Types whose zero ConstantOfShape makes in every opset, with the bytes of an element. */
const zeroBytes: Record<string, number> = {
  float32: 4,
  float64: 8,
  float16: 2,
  int8: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  uint8: 1,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  bool: 1,
};

/**
 * A copy of the model in which nodes that make zeros stand for its large weights. Values have the types and shapes that they have in the
 * model, and running it needs the memory of a weight at a time: shapes follow from small tensors, which stay.
 */
export function weightlessModel(model: OnnxModel): OnnxModel {
  const proto = clone(ModelProtoSchema, model.proto);
  const names = UniqueNames.forModel(proto);
  for (const body of graphsAndFunctions(proto)) {
    const zeroMakers: NodeProto[] = [];
    if (body.$typeName === "onnx.GraphProto") {
      const replaced = new Set(body.initializer.filter(isReplaceable));
      zeroMakers.push(...[...replaced].flatMap((tensor) => zeroNodes(tensor, tensor.name, names)));
      const replacedNames = new Set([...replaced].map(({ name }) => name));
      body.initializer = body.initializer.filter((tensor) => !replaced.has(tensor));
      body.input = body.input.filter(({ name }) => !replacedNames.has(name));
    }
    const nodes = body.node.flatMap((node) => {
      const tensor = isConstant(node)
        ? node.attribute.find(({ t }) => t && isReplaceable(t))?.t
        : undefined;
      return tensor ? zeroNodes(tensor, node.output[0] ?? "", names) : [node];
    });
    body.node = [...zeroMakers, ...nodes];
  }
  return { ...model, proto };
}

function isReplaceable(tensor: TensorProto): boolean {
  return payloadIndex(tensor) !== undefined && elementTypeName(tensor.dataType) in zeroBytes;
}

function zeroNodes(
  { dims, dataType }: TensorProto,
  output: string,
  names: UniqueNames,
): NodeProto[] {
  const shape = names.allocate(`${output}_shape`);
  const zero = create(TensorProtoSchema, {
    dims: [1n],
    dataType,
    rawData: new Uint8Array(zeroBytes[elementTypeName(dataType)] ?? 0),
  });
  const sizes = create(TensorProtoSchema, {
    dims: [BigInt(dims.length)],
    dataType: TensorProto_DataType.INT64,
    int64Data: dims,
  });
  const attribute = (t: TensorProto) => [
    { name: "value", type: AttributeProto_AttributeType.TENSOR, t },
  ];
  return [
    create(NodeProtoSchema, { opType: "Constant", output: [shape], attribute: attribute(sizes) }),
    create(NodeProtoSchema, {
      opType: "ConstantOfShape",
      input: [shape],
      output: [output],
      attribute: attribute(zero),
    }),
  ];
}
