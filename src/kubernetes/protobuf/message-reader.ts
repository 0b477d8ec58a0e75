import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { decodeUtf8 } from "./decode-utf8.ts";

/**
 * Reads chosen fields of protobuf messages into the form of their JSON. Other fields are skipped
 * without being decoded.
 */
export interface MessageReader<T> {
  /** Reads up to the position `end` and adds to `before`, the earlier part of the same message. */
  read(reader: BinaryReader, end: number, before: T | undefined): T;
}

/**
 * Reads the value of a field; `before` is its value so far. Returns undefined where JSON omits the
 * field.
 */
export type FieldReader<T> = (reader: BinaryReader, before: T | undefined) => T | undefined;

/** For every property of `T`, the field's number in the published schema and its reader. */
type Fields<T> = {
  readonly [Name in keyof T]-?: readonly [number: number, read: FieldReader<NonNullable<T[Name]>>];
};

export function messageReader<T extends object>(fields: Fields<T>): MessageReader<T> {
  const names = Object.keys(fields) as (keyof T)[];
  const byNumber: { name: keyof T; read: (typeof fields)[keyof T][1] }[] = [];
  for (const name of names) byNumber[fields[name][0]] = { name, read: fields[name][1] };
  return {
    read(reader, end, before) {
      const value: Partial<T> = before ?? {};
      while (reader.pos < end) {
        const tag = reader.uint32();
        const field = byNumber[tag >>> 3];
        if (field === undefined) skipField(reader, tag & 7);
        else {
          const read = field.read(reader, value[field.name] ?? undefined);
          if (read !== undefined) value[field.name] = read;
        }
      }
      if (reader.pos !== end) throw new RangeError("A protobuf message is cut off");
      return value as T;
    },
  };
}

/** Reads the message that begins at position `start`. */
export function decodeMessage<T>(type: MessageReader<T>, bytes: Uint8Array, start = 0): T {
  const reader = new BinaryReader(bytes, decodeUtf8);
  reader.pos = start;
  return type.read(reader, bytes.length, undefined);
}

/** Faster than `BinaryReader.skip()`, which creates a view of the skipped bytes. */
function skipField(reader: BinaryReader, wireType: WireType): void {
  if (wireType === WireType.Varint) reader.uint32();
  else if (wireType === WireType.LengthDelimited) reader.pos = reader.uint32() + reader.pos;
  else reader.skip(wireType);
}
