import { closeSync, fstatSync, openSync } from "node:fs";
import path from "node:path";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { readExactlySync } from "../../model-files/file-access.ts";
import {
  type CheckpointTensor,
  invalidFileError,
  truncatedFileError,
} from "./checkpoint-tensor.ts";
import { encodedBytes, encodings, type Encoding } from "./encodings.ts";

/**
 * What a header may have at most: a vocabulary of a million words has some 60 MB, and five million
 * values in lists. A value of a byte takes eight in memory.
 */
const limits = {
  headerBytes: 256 * 1024 ** 2,
  entries: 4096,
  listValues: 10_000_000,
  tensors: 100_000,
} as const;
const firstReadBytes = 1024 * 1024;
const magic = Buffer.from("GGUF");

/** Value of an entry of metadata. Integers of 64 bits must fit a number. */
export type GgufValue = string | number | boolean | readonly (string | number | boolean)[];

interface Gguf {
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: readonly CheckpointTensor[];
}

/** Types of tensors by their number in the file. */
const tensorTypes: Readonly<Record<number, Encoding>> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  6: "Q5_0",
  7: "Q5_1",
  8: "Q8_0",
  10: "Q2_K",
  11: "Q3_K",
  12: "Q4_K",
  13: "Q5_K",
  14: "Q6_K",
  20: "IQ4_NL",
  23: "IQ4_XS",
  30: "BF16",
};

/** Whether a file begins as GGUF files do. */
export function isGguf(file: string): boolean {
  const descriptor = openSync(file, "r");
  try {
    if (fstatSync(descriptor).size < magic.length) return false;
    const first = Buffer.alloc(magic.length);
    readExactlySync(descriptor, first, 0);
    return first.equals(magic);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Reads the header of a GGUF file of version 2 or 3: its metadata, and where its tensors are. Reads
 * grow until the header is there, so that they take twice its bytes at most
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 * @throws ServiceError model_invalid, model_truncated, model_unsupported; each names the file and,
 * where there is one, the tensor and the field
 */
export function readGguf(file: string): Gguf {
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    for (let length = Math.min(size, firstReadBytes); ; length = Math.min(size, 2 * length)) {
      const bytes = Buffer.alloc(length);
      readExactlySync(descriptor, bytes, 0);
      try {
        return parseHeader(file, bytes, size);
      } catch (error) {
        if (!(error instanceof HeaderGoesOn)) throw error;
        if (length === size) throw truncatedFileError(file, `its header goes on at byte ${size}`);
        if (length >= limits.headerBytes) {
          const message = `the header has more than ${limits.headerBytes} bytes`;
          throw invalidFileError(file, undefined, message, error);
        }
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

/** The bytes that were read end within the header. */
class HeaderGoesOn extends RangeError {}

function parseHeader(file: string, bytes: Buffer, size: number): Gguf {
  const reader = new HeaderReader(file, bytes);
  reader.skip(magic.length);
  const version = reader.uint32();
  if (version !== 2 && version !== 3) {
    const message = `${path.basename(file)}: version ${version} of GGUF is not read; the known ones are 2, 3`;
    throw new ServiceError("model_unsupported", message);
  }
  const tensorCount = reader.count("tensors", limits.tensors);
  const entryCount = reader.count("entries of metadata", limits.entries);
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < entryCount; index++) {
    const key = reader.string();
    if (metadata.has(key)) {
      throw invalidFileError(file, undefined, `metadata ${quoteName(key)} is there twice`);
    }
    metadata.set(key, reader.value(reader.uint32()));
  }
  const entries = new Map<string, TensorEntry>();
  for (let index = 0; index < tensorCount; index++) {
    const entry = readEntry(file, reader);
    if (entries.has(entry.name)) throw invalidFileError(file, entry.name, "it is there twice");
    entries.set(entry.name, entry);
  }
  const alignment = metadata.get("general.alignment") ?? 32;
  if (typeof alignment !== "number" || !(alignment >= 1) || alignment % 8 !== 0) {
    throw invalidFileError(file, undefined, "general.alignment is not a multiple of 8");
  }
  const start = Math.ceil(reader.position / alignment) * alignment;
  return {
    metadata,
    tensors: placeTensors(file, [...entries.values()], { start, alignment, size }),
  };
}

type TensorEntry = Omit<CheckpointTensor, "path"> & { readonly bytes: number };

function readEntry(file: string, reader: HeaderReader): TensorEntry {
  const name = reader.string();
  const axes = reader.uint32();
  if (axes > 4) throw invalidFileError(file, name, `n_dims is ${axes}, and may be 4`);
  const dims = Array.from({ length: axes }, () => reader.uint64()).reverse();
  const type = reader.uint32();
  const encoding = tensorTypes[type];
  if (encoding === undefined) {
    const known = Object.values(tensorTypes).join(", ");
    const where = `${path.basename(file)}: tensor ${quoteName(name)}: type`;
    throw new ServiceError(
      "model_unsupported",
      `${where} ${type} is not read; the known ones are ${known}`,
    );
  }
  const { blockValues } = encodings[encoding];
  const [columns = 1] = dims.slice(-1);
  const values = dims.reduce((product, length) => product * length, 1);
  if (!Number.isSafeInteger(values * 4) || columns % blockValues !== 0) {
    const shape = `[${dims.join(", ")}] has rows that are not whole blocks of ${blockValues}`;
    throw invalidFileError(file, name, `ne: ${shape}`);
  }
  return { name, encoding, dims, offset: reader.uint64(), bytes: encodedBytes(encoding, values) };
}

/** Offsets count from the first aligned byte after the header; no two tensors share a byte. */
function placeTensors(
  file: string,
  entries: readonly TensorEntry[],
  { start, alignment, size }: { start: number; alignment: number; size: number },
): CheckpointTensor[] {
  let before = { name: "", end: 0 };
  for (const { name, offset, bytes } of entries.toSorted((a, b) => a.offset - b.offset)) {
    if (offset % alignment !== 0) {
      throw invalidFileError(file, name, `offset: ${offset} is not a multiple of ${alignment}`);
    }
    if (offset < before.end) {
      const other = `tensor ${quoteName(before.name)}, which ends at ${before.end}`;
      throw invalidFileError(file, name, `offset: it begins at ${offset} and overlaps ${other}`);
    }
    before = { name, end: offset + bytes };
    if (start + before.end > size) {
      const where = `tensor ${quoteName(name)}: offset: it ends at byte ${start + before.end}`;
      throw truncatedFileError(file, `${where}, and the file has ${size}`);
    }
  }
  return entries.map(({ name, encoding, dims, offset }) => {
    return { name, path: file, offset: start + offset, encoding, dims };
  });
}

/** Reads little-endian values one after the other. */
class HeaderReader {
  position = 0;
  readonly #file: string;
  readonly #bytes: Buffer;
  #listValues = 0;

  constructor(file: string, bytes: Buffer) {
    this.#file = file;
    this.#bytes = bytes;
  }

  /** Moves past so many bytes. @returns where they begin */
  skip(length: number): number {
    const begin = this.position;
    if (begin + length > this.#bytes.length) throw new HeaderGoesOn();
    this.position += length;
    return begin;
  }

  uint32(): number {
    return this.#bytes.readUInt32LE(this.skip(4));
  }

  uint64(): number {
    return this.#safeNumber(this.#bytes.readBigUInt64LE(this.skip(8)));
  }

  count(what: string, most: number): number {
    const found = this.uint64();
    if (found <= most) return found;
    throw invalidFileError(this.#file, undefined, `it has ${found} ${what}, and may have ${most}`);
  }

  string(): string {
    const length = this.uint64();
    const begin = this.skip(length);
    return this.#bytes.toString("utf8", begin, begin + length);
  }

  /** A value of metadata, whose type has a number in the format. */
  value(type: number): GgufValue {
    if (type !== 9) return this.#scalar(type);
    const elementType = this.uint32();
    const length = this.uint64();
    this.#listValues += length;
    if (this.#listValues > limits.listValues) {
      const message = `it has more than ${limits.listValues} values in lists`;
      throw invalidFileError(this.#file, undefined, message);
    }
    const elements: (string | number | boolean)[] = [];
    for (let index = 0; index < length; index++) elements.push(this.#scalar(elementType));
    return elements;
  }

  #scalar(type: number): string | number | boolean {
    const bytes = this.#bytes;
    switch (type) {
      case 0:
        return bytes.readUInt8(this.skip(1));
      case 1:
        return bytes.readInt8(this.skip(1));
      case 2:
        return bytes.readUInt16LE(this.skip(2));
      case 3:
        return bytes.readInt16LE(this.skip(2));
      case 4:
        return this.uint32();
      case 5:
        return bytes.readInt32LE(this.skip(4));
      case 6:
        return bytes.readFloatLE(this.skip(4));
      case 7:
        return bytes.readUInt8(this.skip(1)) !== 0;
      case 8:
        return this.string();
      case 10:
        return this.uint64();
      case 11:
        return this.#safeNumber(bytes.readBigInt64LE(this.skip(8)));
      case 12:
        return bytes.readDoubleLE(this.skip(8));
      default:
        throw invalidFileError(this.#file, undefined, `metadata has values of type ${type}`);
    }
  }

  #safeNumber(value: bigint): number {
    if (value >= -9007199254740991n && value <= 9007199254740991n) return Number(value);
    throw invalidFileError(this.#file, undefined, `the header has the number ${value}`);
  }
}
