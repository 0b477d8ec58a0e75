import type { ByteWindow } from "./byte-window.ts";
import { payloadField, payloadKey } from "./payload.ts";
import { spliceTensors } from "./splice-tensors.ts";
import type { Splice } from "./splice-tensors.ts";
import { concatBytes, lengthPrefix, WireError, wireType } from "./wire-format.ts";
import type { WireField } from "./wire-format.ts";

/** Content of tensors from this size on stays in the file. Smaller content (shapes, scalars) is worth having at hand. */
const minPayloadBytes = 4096;
/** Largest encoded graph without its weights, bytes. A graph of 50,000 nodes has about 20 MB. */
const maxSkeletonBytes = 256 * 1024 * 1024;

const externalDataField = 13;
const dataLocationField = 14;
const external = Uint8Array.of(dataLocationField * 8 + wireType.varint, 1);

const payloadFields: ReadonlySet<number> = new Set(Object.values(payloadField));

/** Where the content of a tensor lies in the file. */
export interface PayloadRange {
  readonly offset: number;
  readonly length: number;
  readonly field: number;
}

/**
 * Reads an encoded ModelProto without the content of its large tensors; those refer to `ranges` by index (`payloadKey`).
 * @throws WireError
 */
export function cutPayloads(bytes: ByteWindow): { skeleton: Uint8Array; ranges: PayloadRange[] } {
  const ranges: PayloadRange[] = [];
  const splices = spliceTensors(bytes, (fields) => cutTensor(fields, bytes, ranges));
  const cut = splices.reduce(
    (sum, splice) => sum + splice.end - splice.start - splice.bytes.length,
    0,
  );
  if (bytes.length - cut > maxSkeletonBytes) {
    throw new WireError(
      `The graph without its weights has ${bytes.length - cut} bytes, and may have ${maxSkeletonBytes}`,
    );
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
  for (const field of fields) {
    if (field.number === externalDataField)
      refuseReservedKey(bytes.copy(field.bodyStart, field.end));
  }
  const large = fields.filter(
    (field) =>
      payloadFields.has(field.number) &&
      field.wireType === wireType.lengthDelimited &&
      field.end - field.bodyStart >= minPayloadBytes,
  );
  const [content] = large;
  if (content === undefined) return [];
  const others = fields.filter(
    (field) => payloadFields.has(field.number) || field.number === externalDataField,
  );
  if (others.length > 1)
    throw new WireError(`The tensor at byte ${content.start} holds its content twice`);
  const index = ranges.push({
    offset: content.bodyStart,
    length: content.end - content.bodyStart,
    field: content.number,
  });
  return [
    {
      start: content.start,
      end: content.end,
      bytes: payloadReference(index - 1),
      payloadSlot: undefined,
    },
  ];
}

/** An `external_data` entry that names a payload, and `data_location` EXTERNAL. */
function payloadReference(index: number): Uint8Array {
  const text = new TextEncoder();
  const key = text.encode(payloadKey);
  const value = text.encode(String(index));
  const entry = concatBytes([
    lengthPrefix(1, key.length),
    key,
    lengthPrefix(2, value.length),
    value,
  ]);
  return concatBytes([lengthPrefix(externalDataField, entry.length), entry, external]);
}

function refuseReservedKey(entry: Uint8Array): void {
  const isReserved = Buffer.from(entry.buffer, entry.byteOffset, entry.length).includes(payloadKey);
  if (isReserved) throw new WireError("External data has a NUL character in its description");
}
