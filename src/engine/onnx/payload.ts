import { create } from "@bufbuild/protobuf";
import {
  StringStringEntryProtoSchema,
  type TensorProto,
  TensorProto_DataLocation,
  TensorProtoSchema,
} from "./onnx_pb.js";
import type { OnnxModel, Payload } from "./onnx-model.ts";

/** Fields of TensorProto that can be a payload; typed ones keep their packed encoding. */
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

/** Key that no file can contain: external data with such a character is refused. */
export const payloadKey = "\0payload";

export function payloadIndex(tensor: TensorProto): number | undefined {
  const [entry] = tensor.externalData;
  return entry?.key === payloadKey ? Number(entry.value) : undefined;
}

export function findPayload(model: OnnxModel, tensor: TensorProto): Payload | undefined {
  const index = payloadIndex(tensor);
  return index === undefined ? undefined : model.payloads[index];
}

/** Replaces the content of a tensor by a reference to a payload. @returns the payload's index */
export function setPayload(model: OnnxModel, tensor: TensorProto, payload: Payload): number {
  const index = model.payloads.push(payload) - 1;
  tensor.dataLocation = TensorProto_DataLocation.EXTERNAL;
  tensor.externalData = [
    create(StringStringEntryProtoSchema, { key: payloadKey, value: String(index) }),
  ];
  return index;
}

interface TensorShape {
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

/** A part of a model's ONNX file, bytes. */
export interface FileRange {
  readonly offset: number;
  readonly length: number;
}

/** Brings parts of the ONNX file to this machine, where not all of it is there. */
export type FetchRanges = (ranges: readonly FileRange[]) => Promise<void>;

type Source = ({ readonly kind: "file"; readonly path: string } & FileRange) | { kind: string };

/** Those of the sources that lie in the ONNX file. */
export function rangesInModel({ path }: OnnxModel, sources: readonly Source[]): FileRange[] {
  return sources.flatMap((source) =>
    "path" in source && source.path === path
      ? [{ offset: source.offset, length: source.length }]
      : [],
  );
}
