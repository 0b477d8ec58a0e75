import { WireType } from "@bufbuild/protobuf/wire";
import { type FieldReader, type MessageReader, messageReader } from "./message-reader.ts";

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

const firstStringTag = (1 << 3) | WireType.LengthDelimited;

/**
 * A message whose first field is a string, in the order that Kubernetes writes: read where the
 * string is among `names`, skipped otherwise.
 */
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

const mapEntry = messageReader<{ key: string; value?: string }>({
  key: [1, stringField],
  value: [2, stringField],
});

/** The entries of a map with these keys. */
export function mapField(keys: readonly string[]): FieldReader<Record<string, string>> {
  const readEntry = namedMessageField(keys, mapEntry);
  return (reader, before) => {
    const entry = readEntry(reader, undefined);
    return entry === undefined ? before : { ...before, [entry.key]: entry.value ?? "" };
  };
}

const timestamp = messageReader<{ seconds?: number; nanos?: number }>({
  seconds: [1, integerField],
  nanos: [2, integerField],
});
const readTimestamp = messageField(timestamp);

/** A `Time`, in whole seconds. */
export const timeField: FieldReader<string> = (reader) => {
  const { seconds } = readTimestamp(reader, undefined) ?? {};
  return seconds === undefined ? undefined : `${isoSeconds(seconds)}Z`;
};

/** A `MicroTime`, in whole microseconds. */
export const microTimeField: FieldReader<string> = (reader) => {
  const { seconds, nanos = 0 } = readTimestamp(reader, undefined) ?? {};
  if (seconds === undefined) return undefined;
  const micros = Math.floor(nanos / 1000)
    .toString()
    .padStart(6, "0");
  return `${isoSeconds(seconds)}.${micros}Z`;
};

function isoSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, "2026-01-01T00:00:00".length);
}
