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
import type { GraphProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { payloadIndex } from "../onnx/payload.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { UniqueNames } from "../onnx/names.ts";
import { raiseOpset } from "../opset/raise-opset.ts";
import { isConstantNode } from "./pipeline-graph.ts";

/** First version of the standard operator set that has ConstantOfShape. */
const zerosOpset = 9;
/** Types that ConstantOfShape supports in every opset, with the bytes of an element. */
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
 * A copy of the model in which nodes that compute zeros replace the large weights. Values have the
 * types and shapes that they have in the model, since small tensors, which shapes follow from,
 * stay. Running it needs the memory of one weight at a time.
 * @throws ServiceError model_opset_unsupported
 */
export function weightlessModel(model: OnnxModel): OnnxModel {
  const proto = clone(ModelProtoSchema, model.proto);
  raiseOpset(proto, zerosOpset);
  const names = UniqueNames.forModel(proto);
  for (const body of graphsAndFunctions(proto)) {
    const zeros = body.$typeName === "onnx.GraphProto" ? replaceInitializers(body, names) : [];
    body.node = [...zeros, ...body.node.flatMap((node) => replaceConstant(node, names))];
  }
  return { ...model, proto };
}

/** @returns nodes that compute zeros for the initializers that it removes */
function replaceInitializers(graph: GraphProto, names: UniqueNames): NodeProto[] {
  const replaced = graph.initializer.filter(isReplaceable);
  const replacedNames = new Set(replaced.map(({ name }) => name));
  graph.initializer = graph.initializer.filter((tensor) => !isReplaceable(tensor));
  graph.input = graph.input.filter(({ name }) => !replacedNames.has(name));
  return replaced.flatMap((tensor) => zeroNodes(tensor, tensor.name, names));
}

function replaceConstant(node: NodeProto, names: UniqueNames): NodeProto[] {
  if (!isConstantNode(node)) return [node];
  const tensor = node.attribute.find(({ t }) => t && isReplaceable(t))?.t;
  const [output] = node.output;
  return tensor && output !== undefined ? zeroNodes(tensor, output, names) : [node];
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
  const sizes = create(TensorProtoSchema, {
    dims: [BigInt(dims.length)],
    dataType: TensorProto_DataType.INT64,
    int64Data: dims,
  });
  const elementBytes = zeroBytes[elementTypeName(dataType)];
  if (elementBytes === undefined) throw new TypeError(`No zeros of data type ${dataType}`);
  const rawData = new Uint8Array(elementBytes);
  const zero = create(TensorProtoSchema, { dims: [1n], dataType, rawData });
  return [
    createNodeWithValue("Constant", { output: [shape] }, sizes),
    createNodeWithValue("ConstantOfShape", { input: [shape], output: [output] }, zero),
  ];
}

function createNodeWithValue(
  opType: string,
  values: { input?: string[]; output: string[] },
  t: TensorProto,
): NodeProto {
  const value = { name: "value", type: AttributeProto_AttributeType.TENSOR, t };
  return create(NodeProtoSchema, { opType, ...values, attribute: [value] });
}
