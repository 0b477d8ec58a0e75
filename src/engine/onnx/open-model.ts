import { closeSync, openSync } from "node:fs";
import { stat } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import { ByteWindow } from "./byte-window.ts";
import { checkModel, checkShape } from "./check-model.ts";
import { cutPayloads } from "./cut-payloads.ts";
import type { PayloadRange } from "./cut-payloads.ts";
import { ExternalData } from "./external-data.ts";
import { modelTensors } from "./model-traversal.ts";
import { ModelProtoSchema, TensorProto_DataLocation } from "./onnx_pb.js";
import type { ModelProto } from "./onnx_pb.js";
import { payloadIndex, setPayload } from "./payload.ts";
import type { OnnxModel } from "./onnx-model.ts";
import { WireError } from "./wire-format.ts";

interface OpenModelOptions {
  /** Largest sum of the ONNX file and its external data, bytes. */
  readonly maxBytes: number;
}

/**
 * Reads the graph of an ONNX file of any size. The content of large tensors stays where it is and
 * is read by range.
 * @throws ServiceError model_invalid, model_truncated, model_too_large, model_opset_unsupported,
 * model_unsupported, external_data_refused, external_data_missing, external_data_short
 */
export async function openModel(path: string, { maxBytes }: OpenModelOptions): Promise<OnnxModel> {
  const { size } = await stat(path);
  if (size === 0) throw new ServiceError("model_invalid", "The file is empty");
  checkTotalModelBytes(size, maxBytes);
  const { proto, ranges } = readSkeleton(path, size);
  const model = { path, proto, payloads: [], bytes: size };
  const externalBytes = attachPayloads(model, ranges);
  checkTotalModelBytes(size + externalBytes, maxBytes);
  checkModel(model);
  return { ...model, bytes: size + externalBytes };
}

function checkTotalModelBytes(bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) {
    throw new ServiceError(
      "model_too_large",
      `The model has ${bytes} bytes, and may have ${maxBytes}`,
    );
  }
}

function readSkeleton(path: string, size: number): { proto: ModelProto; ranges: PayloadRange[] } {
  const descriptor = openSync(path, "r");
  try {
    const { skeleton, ranges } = cutPayloads(ByteWindow.fromFile(descriptor, size));
    return { proto: fromBinary(ModelProtoSchema, skeleton), ranges };
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    if (error instanceof WireError && error.truncated) {
      const message = `The file ends early: ${error.message}`;
      throw new ServiceError("model_truncated", message, { cause: error });
    }
    const message = `The file is not an ONNX model: ${errorMessage(error)}`;
    throw new ServiceError("model_invalid", message, { cause: error });
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Adds a payload for every tensor whose content is outside of the skeleton.
 * @returns bytes of the external data files
 */
function attachPayloads(model: OnnxModel, ranges: readonly PayloadRange[]): number {
  const external = new ExternalData(model.path);
  for (const tensor of modelTensors(model.proto)) {
    checkShape(tensor);
    const index = payloadIndex(tensor);
    const range = index === undefined ? undefined : ranges[index];
    if (range !== undefined) {
      setPayload(model, tensor, { kind: "file", path: model.path, ...range });
    } else if (tensor.dataLocation === TensorProto_DataLocation.EXTERNAL) {
      setPayload(model, tensor, external.resolve(tensor));
    }
  }
  return external.bytes;
}
