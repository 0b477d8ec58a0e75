import { closeSync, openSync } from "node:fs";
import {
  type CheckpointType,
  CheckpointValues,
  type ValueRows,
} from "../checkpoints/checkpoint-values.ts";
import { ServiceError } from "../../contract/errors.ts";
import { elementBits, elementTypeName, rawByteLength } from "./element-type.ts";
import { TensorProto_DataType } from "./onnx_pb.js";
import type { TensorProto } from "./onnx_pb.js";
import type { OnnxModel } from "./onnx-model.ts";
import { findPayload, isFixedWidth } from "./payload.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { readExactlySync } from "../../model-files/file-access.ts";
import { elementCount } from "./tensor-shape.ts";

/**
 * Largest content of a tensor that planning reads, bytes, unless it is encoded as varints: larger
 * content need not be on the machine that plans.
 */
export const maxPlannedBytes = 16 * 1024;

/** Where the raw little-endian bytes of a tensor are; can be sent to another thread. */
export type TensorSource =
  | {
      readonly kind: "file";
      readonly path: string;
      readonly offset: number;
      readonly length: number;
    }
  | {
      readonly kind: "checkpoint";
      readonly type: CheckpointType;
      readonly length: number;
      readonly pieces: readonly ValueRows[];
    }
  | { readonly kind: "memory"; readonly bytes: Uint8Array };

/**
 * Finds the raw little-endian bytes of a tensor; reads them only where a file has them encoded.
 * @throws ServiceError model_unsupported for strings
 */
export function tensorSource(model: OnnxModel, tensor: TensorProto): TensorSource {
  const payload = findPayload(model, tensor);
  if (payload === undefined) return { kind: "memory", bytes: inlineBytes(tensor) };
  if (payload.kind === "computed") {
    throw new TypeError(`Tensor ${quoteName(tensor.name)} is still to be computed`);
  }
  if (payload.kind === "checkpoint" || isFixedWidth(payload.field)) return payload;
  const encoded = readFileRange(payload.path, payload.offset, payload.length);
  return { kind: "memory", bytes: varintsToRaw(encoded, tensor) };
}

/** Bytes of a tensor's raw content. @throws ServiceError model_unsupported for strings */
export function tensorByteLength(tensor: TensorProto): number {
  const bytes = rawByteLength(elementCount(tensor.dims), tensor.dataType);
  if (bytes === undefined) {
    const type = elementTypeName(tensor.dataType);
    throw new ServiceError(
      "model_unsupported",
      `Tensor ${quoteName(tensor.name)} has elements of ${type}, which have no fixed size`,
    );
  }
  return bytes;
}

/** The raw little-endian bytes of a tensor of at most `maxBytes`, or of varints. */
export function readTensor(
  model: OnnxModel,
  tensor: TensorProto,
  maxBytes = maxPlannedBytes,
): Uint8Array {
  const source = tensorSource(model, tensor);
  const length = tensorByteLength(tensor);
  if (source.kind === "memory") return source.bytes.slice(0, length);
  if (source.length <= maxBytes) return readPlanned(source, length);
  const size = `${source.length} bytes, and at most ${maxBytes} are read`;
  throw new TypeError(`Tensor ${quoteName(tensor.name)} has ${size}`);
}

function readPlanned(source: Exclude<TensorSource, { kind: "memory" }>, length: number) {
  if (source.kind === "file") return readFileRange(source.path, source.offset, length);
  using values = new CheckpointValues(source.pieces);
  const bytes = new Uint8Array(length);
  values.readBytes(source.type, 0, bytes);
  return bytes;
}

function readFileRange(path: string, offset: number, length: number): Uint8Array {
  const descriptor = openSync(path, "r");
  try {
    const bytes = new Uint8Array(length);
    readExactlySync(descriptor, bytes, offset);
    return bytes;
  } finally {
    closeSync(descriptor);
  }
}

function inlineBytes(tensor: TensorProto): Uint8Array {
  const expected = tensorByteLength(tensor);
  if (tensor.rawData.length > 0) return tensor.rawData;
  if (tensor.floatData.length > 0) return typedArrayBytes(Float32Array.from(tensor.floatData));
  if (tensor.doubleData.length > 0) return typedArrayBytes(Float64Array.from(tensor.doubleData));
  if (tensor.int64Data.length > 0) return typedArrayBytes(BigInt64Array.from(tensor.int64Data));
  const width = elementWidth(tensor);
  const raw = new Uint8Array(expected);
  const view = new DataView(raw.buffer);
  const values = tensor.uint64Data.length > 0 ? tensor.uint64Data : tensor.int32Data.map(BigInt);
  for (const [index, value] of values.entries()) writeInteger(view, index * width, width, value);
  return raw;
}

function typedArrayBytes(array: Float32Array | Float64Array | BigInt64Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Bytes that one entry of a typed integer field stands for. */
function elementWidth(tensor: TensorProto): number {
  return Math.max(1, (elementBits(tensor.dataType) ?? 8) / 8);
}

function writeInteger(view: DataView, offset: number, width: number, value: bigint): void {
  if (offset + width > view.byteLength) return;
  if (width === 1) view.setUint8(offset, Number(BigInt.asUintN(8, value)));
  else if (width === 2) view.setUint16(offset, Number(BigInt.asUintN(16, value)), true);
  else if (width === 4) view.setUint32(offset, Number(BigInt.asUintN(32, value)), true);
  else view.setBigUint64(offset, BigInt.asUintN(64, value), true);
}

/** Decodes the packed varints of a typed integer field to the tensor's raw bytes. */
function varintsToRaw(encoded: Uint8Array, tensor: TensorProto): Uint8Array {
  const width = elementWidth(tensor);
  const raw = new Uint8Array(tensorByteLength(tensor));
  let offset = 0;
  for (let at = 0; at < encoded.length; offset += width) {
    // The low and the high 32 bits; operations on big integers take ten times as long.
    let [low, high] = [0, 0];
    let byte = 0x80;
    for (let shift = 0; byte >= 0x80; shift += 7) {
      const next = encoded[at++];
      if (next === undefined) throw new RangeError(`The last number of ${tensor.name} has no end`);
      byte = next;
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift > 25 && shift < 64)
        high |= shift < 32 ? bits >> (32 - shift) : bits << (shift - 32);
    }
    for (let index = 0; index < width && offset + index < raw.length; index++) {
      const word = index < 4 ? low : high;
      raw[offset + index] = word >>> ((index % 4) * 8);
    }
  }
  if (offset !== raw.length) {
    const content = `${offset / width} elements, and its shape needs ${raw.length / width}`;
    throw new ServiceError("model_invalid", `Tensor ${quoteName(tensor.name)} holds ${content}`);
  }
  return raw;
}

/** The elements of a float32 tensor that is in memory; undefined for others. */
export function readFloat32Elements(tensor: TensorProto): number[] | undefined {
  const { dataType, externalData, rawData, floatData } = tensor;
  if (dataType !== TensorProto_DataType.FLOAT || externalData.length > 0) return undefined;
  if (rawData.length === 0) return floatData;
  const view = new DataView(rawData.buffer, rawData.byteOffset, rawData.byteLength);
  return Array.from({ length: rawData.length / 4 }, (_, index) => view.getFloat32(index * 4, true));
}
