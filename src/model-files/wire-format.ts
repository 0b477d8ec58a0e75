import type { ByteWindow } from "./byte-window.ts";

/** One field of a message: positions of its tag, its length if any, its body and its end. */
export interface WireField {
  readonly number: number;
  readonly wireType: number;
  readonly start: number;
  readonly lengthStart: number;
  readonly bodyStart: number;
  readonly end: number;
}

export const wireType = { varint: 0, fixed64: 1, lengthDelimited: 2, fixed32: 5 } as const;

/** Bytes are not protobuf; `truncated` where a field runs over the last of them. */
export class WireError extends Error {
  override readonly name = "WireError";
  readonly truncated: boolean;

  constructor(message: string, truncated = false) {
    super(message);
    this.truncated = truncated;
  }
}

/** Reads a varint as a number; exact below 2^53, which every length and tag is. */
export function readVarint(
  bytes: ByteWindow,
  position: number,
  limit: number,
): { value: number; end: number } {
  let value = 0;
  let scale = 1;
  for (let at = position; at < position + 10; at++) {
    if (at >= limit) {
      throw new WireError(`A number at byte ${position} has no end`, limit === bytes.length);
    }
    const byte = bytes.byteAt(at);
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, end: at + 1 };
    scale *= 128;
  }
  throw new WireError(`The number at byte ${position} is longer than 10 bytes`);
}

const maxFieldNumber = 2 ** 29 - 1;

/** Reads the field at `start` of a message that ends at `limit`. @throws WireError */
export function readField(bytes: ByteWindow, start: number, limit: number): WireField {
  const { value: tag, end: lengthStart } = readVarint(bytes, start, limit);
  const number = Math.floor(tag / 8);
  const type = tag % 8;
  if (number === 0 || number > maxFieldNumber) {
    throw new WireError(`The field at byte ${start} has number ${number}`);
  }
  let bodyStart = lengthStart;
  let end: number;
  if (type === wireType.varint) end = readVarint(bytes, lengthStart, limit).end;
  else if (type === wireType.fixed64) end = lengthStart + 8;
  else if (type === wireType.fixed32) end = lengthStart + 4;
  else if (type === wireType.lengthDelimited) {
    const length = readVarint(bytes, lengthStart, limit);
    bodyStart = length.end;
    end = bodyStart + length.value;
  } else throw new WireError(`The field at byte ${start} has wire type ${type}`);
  if (end > limit) {
    throw new WireError(`The field at byte ${start} runs over the end`, end > bytes.length);
  }
  return { number, wireType: type, start, lengthStart, bodyStart, end };
}

export function varintBytes(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
  return Uint8Array.from(bytes);
}

/** Tag and length of a length-delimited field. */
export function lengthPrefix(field: number, length: number): Uint8Array {
  return concatBytes([varintBytes(field * 8 + wireType.lengthDelimited), varintBytes(length)]);
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}
