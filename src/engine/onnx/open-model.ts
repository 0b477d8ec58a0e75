import { closeSync, openSync, readSync } from "node:fs";
import { stat } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { ByteWindow } from "../../model-files/byte-window.ts";
import { checkModel, checkShape } from "./check-model.ts";
import {
  dataLocationField,
  encodeExternalDataEntry,
  ExternalData,
  externalDataField,
} from "./external-data.ts";
import { modelTensors } from "./model-traversal.ts";
import { type ModelProto, ModelProtoSchema, TensorProto_DataLocation } from "./onnx_pb.js";
import type { OnnxModel } from "./onnx-model.ts";
import { payloadField, payloadIndex, payloadKey, setPayload } from "./payload.ts";
import { type Splice, spliceTensors } from "./splice-tensors.ts";
import { concatBytes, WireError, type WireField, wireType } from "../../model-files/wire-format.ts";
import { ServiceError } from "../../contract/errors.ts";
import { graphLimits } from "../../contract/models/graph-limits.ts";
import { errorMessage } from "../../log/error-message.ts";

/**
 * Reads the graph of an ONNX file of any size. The content of large tensors stays where it is and
 * is read by range. ONNX file and external data together may have `maxBytes`.
 * @throws ServiceError model_invalid, model_truncated, model_too_large, model_opset_unsupported,
 * model_unsupported, external_data_refused, external_data_missing, external_data_short
 */
export async function openModel(path: string, maxBytes: number): Promise<OnnxModel> {
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

/** @throws ServiceError model_too_large */
export function checkTotalModelBytes(bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) {
    const message = `The model has ${bytes} bytes; at most ${maxBytes} are allowed`;
    throw new ServiceError("model_too_large", message);
  }
}

function readSkeleton(path: string, size: number): { proto: ModelProto; ranges: PayloadRange[] } {
  const descriptor = openSync(path, "r");
  try {
    const { skeleton, ranges } = cutPayloads(ByteWindow.fromFile(descriptor, size));
    return { proto: fromBinary(ModelProtoSchema, skeleton), ranges };
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const other = recognizeFile(descriptor);
    if (other === undefined && error instanceof WireError && error.truncated) {
      const message = `The file ends early: ${error.message}`;
      throw new ServiceError("model_truncated", message, { cause: error });
    }
    const message = `The file is not an ONNX model: ${other ?? errorMessage(error)}`;
    throw new ServiceError("model_invalid", message, { cause: error });
  } finally {
    closeSync(descriptor);
  }
}

/** How files begin that are taken for models by mistake. */
const otherFiles: readonly (readonly [start: RegExp, found: string])[] = [
  [
    /^version https:\/\/git-lfs/,
    "it is a pointer of Git LFS; set lfs: true for actions/checkout, which fetches the file then",
  ],
  [
    /^\s*<(!doctype|html|\?xml)/i,
    "it is a web page; the address has to be that of the file itself",
  ],
  [/^PK[^ -~]/, "it is a ZIP archive, as PyTorch saves models; export it to ONNX first"],
];
const startBytes = 64;

function recognizeFile(descriptor: number): string | undefined {
  const bytes = Buffer.alloc(startBytes);
  const start = bytes.toString("latin1", 0, readSync(descriptor, bytes, 0, startBytes, 0));
  return otherFiles.find(([pattern]) => pattern.test(start))?.[1];
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

/** Content from this size on stays in the file; shapes and scalars are read with the graph. */
const minPayloadBytes = 4096;
/** Largest encoded graph without its weights; one of 50,000 nodes has about 20 MB. */
const maxSkeletonBytes = 256 * 1024 * 1024;

const externalLocation = Uint8Array.of(dataLocationField * 8 + wireType.varint, 1);

const payloadFields: ReadonlySet<number> = new Set(Object.values(payloadField));

/** Where the content of a tensor lies in the file. */
interface PayloadRange {
  readonly offset: number;
  readonly length: number;
  readonly field: number;
}

/**
 * Reads an encoded ModelProto without the content of its large tensors, which refer to `ranges` by
 * index (`payloadKey`) instead.
 * @throws WireError; ServiceError model_unsupported for a graph beyond graphLimits
 */
function cutPayloads(bytes: ByteWindow): { skeleton: Uint8Array; ranges: PayloadRange[] } {
  const ranges: PayloadRange[] = [];
  const editTensor = (fields: readonly WireField[]) => cutTensor(fields, bytes, ranges);
  const splices = spliceTensors(bytes, editTensor, graphLimits);
  const skeletonBytes = splices.reduce(
    (sum, { start, end, bytes: replacement }) => sum + replacement.length - (end - start),
    bytes.length,
  );
  if (skeletonBytes > maxSkeletonBytes) {
    const size = `${skeletonBytes} bytes, and may have ${maxSkeletonBytes}`;
    throw new WireError(`The graph without its weights has ${size}`);
  }
  return { skeleton: applySplices(bytes, splices), ranges };
}

function applySplices(bytes: ByteWindow, splices: readonly Splice[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let position = 0;
  for (const splice of splices) {
    parts.push(bytes.copy(position, splice.start), splice.bytes);
    position = splice.end;
  }
  parts.push(bytes.copy(position, bytes.length));
  return concatBytes(parts);
}

function cutTensor(
  fields: readonly WireField[],
  bytes: ByteWindow,
  ranges: PayloadRange[],
): Splice[] {
  for (const { number, bodyStart, end } of fields) {
    if (number === externalDataField) refuseReservedKey(bytes.copy(bodyStart, end));
  }
  const content = fields.find(isLargePayload);
  if (content === undefined) return [];
  if (fields.filter(isTensorContent).length > 1) {
    throw new WireError(`The tensor at byte ${content.start} holds its content twice`);
  }
  const { number, start, bodyStart, end } = content;
  const index = ranges.push({ offset: bodyStart, length: end - bodyStart, field: number }) - 1;
  return [{ start, end, bytes: payloadReference(index), payloadSlot: undefined }];
}

function isLargePayload({ number, wireType: type, bodyStart, end }: WireField): boolean {
  const isPayload = payloadFields.has(number) && type === wireType.lengthDelimited;
  return isPayload && end - bodyStart >= minPayloadBytes;
}

function isTensorContent({ number }: WireField): boolean {
  return payloadFields.has(number) || number === externalDataField;
}

/** An `external_data` entry that names a payload, and `data_location` EXTERNAL. */
function payloadReference(index: number): Uint8Array {
  return concatBytes([encodeExternalDataEntry(payloadKey, String(index)), externalLocation]);
}

function refuseReservedKey(entry: Uint8Array): void {
  const isReserved = Buffer.from(entry.buffer, entry.byteOffset, entry.length).includes(payloadKey);
  if (isReserved) throw new WireError("External data has a NUL character in its description");
}
