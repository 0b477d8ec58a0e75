import { create } from "@bufbuild/protobuf";
import {
  StringStringEntryProtoSchema,
  TensorProto_DataLocation,
  TensorProtoSchema,
} from "./onnx_pb.js";
import type { ModelProto, TensorProto } from "./onnx_pb.js";

/** Field of TensorProto that holds a payload: `rawData`, or one of the typed fields, whose packed encoding is kept as it is. */
export const payloadField = {
  float: 4,
  int32: 5,
  int64: 7,
  raw: 9,
  double: 10,
  uint64: 11,
} as const;

/** Fields whose packed bytes are the raw bytes of the tensor. */
const fixedWidthFields: ReadonlySet<number> = new Set([
  payloadField.raw,
  payloadField.float,
  payloadField.double,
]);

/** A tensor's content that is not in memory: a range of a file, or one that is still to be computed. */
export type Payload =
  | {
      readonly kind: "file";
      readonly path: string;
      readonly offset: number;
      readonly length: number;
      readonly field: number;
    }
  | { readonly kind: "computed"; readonly length: number };

/**
 * A model apart from its weights. Tensors whose content is not in `proto` refer to an entry of `payloads` by index
 * (`payloadIndex`); graphs that are cut from or added to the model may share them.
 */
export interface OnnxModel {
  readonly path: string;
  readonly proto: ModelProto;
  readonly payloads: Payload[];
  /** Bytes of the ONNX file and of its external data files. */
  readonly bytes: number;
}

/** Key that no file can bring: files whose external data has such a character are refused. */
export const payloadKey = "\0payload";

export function payloadIndex(tensor: TensorProto): number | undefined {
  const [entry] = tensor.externalData;
  return entry?.key === payloadKey ? Number(entry.value) : undefined;
}

export function findPayload(model: OnnxModel, tensor: TensorProto): Payload | undefined {
  const index = payloadIndex(tensor);
  return index === undefined ? undefined : model.payloads[index];
}

/** Makes a tensor refer to a payload instead of holding its content. */
export function setPayload(model: OnnxModel, tensor: TensorProto, payload: Payload): number {
  const index = model.payloads.push(payload) - 1;
  tensor.dataLocation = TensorProto_DataLocation.EXTERNAL;
  tensor.externalData = [
    create(StringStringEntryProtoSchema, { key: payloadKey, value: String(index) }),
  ];
  return index;
}

export interface TensorShape {
  readonly name: string;
  readonly dims: readonly number[];
  readonly dataType: number;
}

/** A tensor of `length` bytes that are to be computed while the model is written. */
export function addComputedTensor(
  model: OnnxModel,
  shape: TensorShape,
  length: number,
): TensorProto {
  const tensor = create(TensorProtoSchema, { ...shape, dims: shape.dims.map(BigInt) });
  setPayload(model, tensor, { kind: "computed", length });
  return tensor;
}

export function isFixedWidth(field: number): boolean {
  return fixedWidthFields.has(field);
}

/** A shape as text, of which hostile ones show their beginning. */
export function formatShape(dims: readonly bigint[]): string {
  return `[${dims.slice(0, 8).join(", ")}${dims.length > 8 ? ", …" : ""}]`;
}

/** Number of elements. @throws RangeError where it is not a safe integer */
export function elementCount(dims: readonly bigint[]): number {
  let count = dims.includes(0n) ? 0n : 1n;
  for (const dim of dims) {
    count *= dim;
    if (dim < 0n || count > Number.MAX_SAFE_INTEGER) {
      throw new RangeError(`The shape ${formatShape(dims)} is not one of a tensor`);
    }
  }
  return Number(count);
}
