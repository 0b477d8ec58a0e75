import { ServiceError } from "../../contract/errors.ts";
import { checkOrder } from "./sort-nodes.ts";
import { elementBits, elementTypeName, rawByteLength } from "./element-type.ts";
import {
  graphsAndFunctions,
  modelGraphs,
  modelTensors,
  outermostGraphs,
} from "./model-traversal.ts";
import { TensorProto_DataType } from "./onnx_pb.js";
import type { GraphProto, ModelProto, NodeProto, TensorProto } from "./onnx_pb.js";
import type { OnnxModel } from "./onnx-model.ts";
import { findPayload, isFixedWidth } from "./payload.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { standardOpset } from "./node-attributes.ts";
import { elementCount, formatShape } from "./tensor-shape.ts";

/** Operator sets that can be read: from the first that can be raised to the last published. */
const opsetRange = { first: 7, last: 28 } as const;
/** Newest version of the ONNX format that is published. */
const lastIrVersion = 14;
/** What a user brings a model of another operator set into the range with. */
const converter = "Python's onnx.version_converter.convert_version(model, 17)";

/**
 * Checks what every later step relies on: versions, sizes of tensors, names and order of nodes.
 * @throws ServiceError model_invalid, model_opset_unsupported
 */
export function checkModel(model: OnnxModel): void {
  checkVersions(model.proto);
  for (const tensor of modelTensors(model.proto)) checkTensor(model, tensor);
  for (const { node } of graphsAndFunctions(model.proto)) node.forEach(checkOperator);
  for (const graph of modelGraphs(model.proto)) checkInitializers(graph);
  for (const graph of outermostGraphs(model.proto)) checkOrder(graph);
}

function checkVersions(proto: ModelProto): void {
  if (proto.graph === undefined) throw new ServiceError("model_invalid", "The file holds no graph");
  if (proto.irVersion > lastIrVersion) {
    const version = `${proto.irVersion}, and the newest that is known is ${lastIrVersion}`;
    throw new ServiceError("model_opset_unsupported", `The model has IR version ${version}`);
  }
  checkOpset("The model", proto.opsetImport);
  for (const { name, opsetImport } of proto.functions) {
    checkOpset(`Function ${quoteName(name)}`, opsetImport);
  }
  if (proto.opsetImport.length === 0) {
    throw new ServiceError("model_invalid", "The model imports no operator set");
  }
}

function checkOpset(name: string, imports: ModelProto["opsetImport"]): void {
  const version = standardOpset(imports);
  if (version === undefined) return;
  const { first, last } = opsetRange;
  if (version >= first && version <= last) return;
  const supported = `${first} to ${last} are supported`;
  throw new ServiceError(
    "model_opset_unsupported",
    `${name} has opset ${version}, and ${supported}; convert it with ${converter}`,
  );
}

/** @throws ServiceError model_invalid */
export function checkShape({ name, dims }: TensorProto): void {
  try {
    elementCount(dims);
  } catch (error) {
    const message = `Tensor ${quoteName(name)} has no valid shape: ${formatShape(dims)}`;
    throw new ServiceError("model_invalid", message, { cause: error });
  }
}

function checkTensor(model: OnnxModel, tensor: TensorProto): void {
  const elements = elementCount(tensor.dims);
  const actual = contentByteLength(model, tensor);
  const expected = rawByteLength(elements, tensor.dataType);
  if (actual === undefined || expected === undefined) {
    checkStrings(tensor, elements);
    return;
  }
  if (actual !== expected) {
    const type = `${elementTypeName(tensor.dataType)}${formatShape(tensor.dims)}`;
    throw new ServiceError(
      "model_invalid",
      `Tensor ${quoteName(tensor.name)} holds ${actual} bytes, and ${type} needs ${expected}`,
    );
  }
}

function checkStrings(tensor: TensorProto, elements: number): void {
  const { name, dataType, stringData } = tensor;
  if (dataType !== TensorProto_DataType.STRING || stringData.length === elements) return;
  const content = `${stringData.length} strings, and its shape needs ${elements}`;
  throw new ServiceError("model_invalid", `Tensor ${quoteName(name)} holds ${content}`);
}

/** Raw bytes of a tensor's content; undefined where only decoding it shows them. */
function contentByteLength(model: OnnxModel, tensor: TensorProto): number | undefined {
  const payload = findPayload(model, tensor);
  if (payload?.kind === "checkpoint") return payload.length;
  if (payload?.kind === "file") return isFixedWidth(payload.field) ? payload.length : undefined;
  if (tensor.rawData.length > 0) return tensor.rawData.length;
  if (tensor.floatData.length > 0) return tensor.floatData.length * 4;
  if (tensor.doubleData.length > 0) return tensor.doubleData.length * 8;
  if (tensor.int64Data.length > 0) return tensor.int64Data.length * 8;
  const bits = elementBits(tensor.dataType);
  return bits === undefined
    ? undefined
    : (tensor.int32Data.length + tensor.uint64Data.length) * Math.max(1, bits / 8);
}

/** Operators appear in reports, logs and messages, so their names are restricted. */
function checkOperator({ opType, domain }: NodeProto): void {
  if (!/^[!-~]{1,256}$/.test(opType) || !/^[!-~]{0,256}$/.test(domain)) {
    throw new ServiceError(
      "model_invalid",
      `A node has the operator ${quoteName(`${domain}:${opType}`)}`,
    );
  }
}

function checkInitializers(graph: GraphProto): void {
  const names = new Set<string>();
  for (const { name } of graph.initializer) {
    if (names.has(name)) {
      throw new ServiceError("model_invalid", `Initializer ${quoteName(name)} is defined twice`);
    }
    names.add(name);
  }
}
