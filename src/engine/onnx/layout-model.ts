import { toBinary } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { ByteWindow } from "./byte-window.ts";
import { rawByteLength } from "./element-type.ts";
import { graphLimits } from "../../contract/jobs/model-graph.ts";
import { LayoutBuilder, type LayoutOptions } from "./layout-builder.ts";
import type { ModelLayout } from "./model-layout.ts";
import { modelGraphs, modelTensors } from "./model-traversal.ts";
import { ModelProtoSchema } from "./onnx_pb.js";
import type { OnnxModel, Payload } from "./onnx-model.ts";
import { elementCount } from "./tensor-shape.ts";
import { findPayload, payloadField, payloadIndex } from "./payload.ts";
import { spliceTensors, type TensorEditor } from "./splice-tensors.ts";

/** Largest model in one file. Protobuf refuses 2 GiB, and readers differ just below. */
const maxInlineBytes = 1_500_000_000;
const maxProtobufBytes = 2 ** 31 - 1;
/** Smaller content stays in the graph, where shape inference finds it. */
const minExternalBytes = 1024;

/**
 * Lays out a model's files to the byte without its weights' content. With one shard and less than
 * 1.5 GB, everything goes into the ONNX file.
 * @throws ServiceError model_unsupported where the ONNX file would be larger than protobuf allows,
 * or the graph larger than can be opened
 */
export function layoutModel(model: OnnxModel, options: LayoutOptions): ModelLayout {
  const skeleton = ByteWindow.fromBytes(toBinary(ModelProtoSchema, model.proto));
  const inlineBytes = skeleton.length + referencedBytes(model);
  const isExternal = options.shards > 1 || inlineBytes >= maxInlineBytes;
  const external = isExternal ? initializerPayloads(model) : new Set<number>();
  const builder = new LayoutBuilder(model, options, external);
  const editTensor: TensorEditor = (fields, bytes) => builder.editTensor(fields, bytes);
  // Inlined functions and added nodes must not make a result that cannot be opened again.
  const splices = spliceTensors(skeleton, editTensor, graphLimits);
  const modelFile = builder.layoutModelFile(skeleton, splices);
  checkModelFileBytes(modelFile.bytes);
  return { files: [modelFile, ...builder.weightFiles()], placements: builder.placements };
}

function checkModelFileBytes(bytes: number): void {
  if (bytes <= maxProtobufBytes) return;
  const size = `${bytes} bytes, and may have ${maxProtobufBytes}`;
  throw new ServiceError(
    "model_unsupported",
    `The ONNX file would have ${size}: its subgraphs or functions hold too much`,
  );
}

function referencedBytes(model: OnnxModel): number {
  let bytes = 0;
  for (const tensor of modelTensors(model.proto)) bytes += findPayload(model, tensor)?.length ?? 0;
  return bytes;
}

/** Payloads of initializers; those in attributes have to stay in the ONNX file. */
function initializerPayloads(model: OnnxModel): Set<number> {
  const indices = new Set<number>();
  for (const graph of modelGraphs(model.proto)) {
    for (const tensor of graph.initializer) {
      const index = payloadIndex(tensor);
      const payload = index === undefined ? undefined : model.payloads[index];
      if (index === undefined || payload === undefined) continue;
      const bytes = rawByteLength(elementCount(tensor.dims), tensor.dataType);
      if (bytes !== undefined && canBeExternal(payload)) indices.add(index);
    }
  }
  return indices;
}

function canBeExternal(payload: Payload): boolean {
  const isRaw =
    payload.kind === "computed" ||
    payload.field === payloadField.raw ||
    payload.field === payloadField.float;
  return isRaw && payload.length >= minExternalBytes;
}
