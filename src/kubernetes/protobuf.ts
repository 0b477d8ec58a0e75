import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { decodeUtf8 } from "./decode-utf8.ts";

/**
 * Reads messages of which only some fields matter, into the form that their JSON has. What is not named is passed over
 * without being looked at.
 */
export interface MessageReader<T> {
  /** Reads up to the position `end`, on top of what was read of the same message `before`. */
  read(reader: BinaryReader, end: number, before: T | undefined): T;
}

/** Reads a field's value; `before` is what the field held so far. Undefined where JSON would leave the field out. */
export type FieldReader<T> = (reader: BinaryReader, before: T | undefined) => T | undefined;

/** Every field of `T`: its number in the published schema and how to read it. */
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

export const stringField: FieldReader<string> = (reader) => reader.string() || undefined;

export const integerField: FieldReader<number> = (reader) => Number(reader.int64());

export const booleanField: FieldReader<boolean> = (reader) => reader.bool();

export const bytesField: FieldReader<Uint8Array> = (reader) => reader.bytes();

export function messageField<T>(type: MessageReader<T>): FieldReader<T> {
  return (reader, before) => type.read(reader, reader.uint32() + reader.pos, before);
}

export function repeatedField<T>(read: FieldReader<T>): FieldReader<T[]> {
  return (reader, before) => {
    const value = read(reader, undefined);
    if (value === undefined) return before;
    before?.push(value);
    return before ?? [value];
  };
}

/** Of messages that begin with a text, as Kubernetes writes them: those whose text is among the `names`. */
export function namedMessageField<T>(
  names: readonly string[],
  type: MessageReader<T>,
): FieldReader<T> {
  const wanted = new Set(names);
  return (reader) => {
    const end = reader.uint32() + reader.pos;
    const start = reader.pos;
    const isWanted = reader.uint32() === firstStringTag && wanted.has(reader.string());
    reader.pos = isWanted ? start : end;
    return isWanted ? type.read(reader, end, undefined) : undefined;
  };
}

const firstStringTag = (1 << 3) | WireType.LengthDelimited;

const mapEntry = messageReader<{ key: string; value?: string }>({
  key: [1, stringField],
  value: [2, stringField],
});

/** Of a map, the values of these keys. */
export function mapField(keys: readonly string[]): FieldReader<Record<string, string>> {
  const read = namedMessageField(keys, mapEntry);
  return (reader, before) => {
    const parsedEntry = read(reader, undefined);
    return parsedEntry === undefined
      ? before
      : { ...before, [parsedEntry.key]: parsedEntry.value ?? "" };
  };
}

const timestamp = messageReader<{ seconds?: number; nanos?: number }>({
  seconds: [1, integerField],
  nanos: [2, integerField],
});

/** To the second, as most times of objects are. */
export const timeField: FieldReader<string> = (reader) => {
  const { seconds } = messageField(timestamp)(reader, undefined) ?? {};
  return seconds === undefined ? undefined : `${isoSeconds(seconds)}Z`;
};

export const microTimeField: FieldReader<string> = (reader) => {
  const { seconds, nanos = 0 } = messageField(timestamp)(reader, undefined) ?? {};
  if (seconds === undefined) return undefined;
  const micros = Math.floor(nanos / 1000)
    .toString()
    .padStart(6, "0");
  return `${isoSeconds(seconds)}.${micros}Z`;
};

function isoSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, "2026-01-01T00:00:00".length);
}

/** `BinaryReader.skip()` makes a view of what it skips. */
function skipField(reader: BinaryReader, wireType: WireType): void {
  if (wireType === WireType.Varint) reader.uint32();
  else if (wireType === WireType.LengthDelimited) reader.pos = reader.uint32() + reader.pos;
  else reader.skip(wireType);
}
