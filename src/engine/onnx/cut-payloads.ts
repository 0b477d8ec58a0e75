import type { ByteWindow } from "./byte-window.ts";
import {
  dataLocationField,
  encodeExternalDataEntry,
  externalDataField,
} from "./external-data-entry.ts";
import { graphLimits } from "../../contract/jobs/model-graph.ts";
import { payloadField, payloadKey } from "./payload.ts";
import { spliceTensors } from "./splice-tensors.ts";
import type { Splice } from "./splice-tensors.ts";
import { concatBytes, WireError, wireType } from "./wire-format.ts";
import type { WireField } from "./wire-format.ts";

/** Content from this size on stays in the file; shapes and scalars are read with the graph. */
const minPayloadBytes = 4096;
/** Largest encoded graph without its weights; one of 50,000 nodes has about 20 MB. */
const maxSkeletonBytes = 256 * 1024 * 1024;

const externalLocation = Uint8Array.of(dataLocationField * 8 + wireType.varint, 1);

const payloadFields: ReadonlySet<number> = new Set(Object.values(payloadField));

/** Where the content of a tensor lies in the file. */
export interface PayloadRange {
  readonly offset: number;
  readonly length: number;
  readonly field: number;
}

/**
 * Reads an encoded ModelProto without the content of its large tensors, which refer to `ranges` by
 * index (`payloadKey`) instead.
 * @throws WireError; ServiceError model_unsupported for a graph beyond graphLimits
 */
export function cutPayloads(bytes: ByteWindow): { skeleton: Uint8Array; ranges: PayloadRange[] } {
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
