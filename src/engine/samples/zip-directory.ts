import type { FileHandle } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createInflateRaw } from "node:zlib";
import { readExactly } from "../../model-files/file-access.ts";

/** A file in a ZIP archive. Its sizes are those of the archive's directory, unchecked. */
export interface ZipEntry {
  readonly name: string;
  readonly method: "stored" | "deflated";
  readonly compressedBytes: number;
  readonly bytes: number;
  readonly headerOffset: number;
}

const endSignature = 0x06054b50;
const end64Signature = 0x06064b50;
const end64LocatorSignature = 0x07064b50;
const entrySignature = 0x02014b50;
const localSignature = 0x04034b50;
const zip64Extra = 1;
const absent32 = 0xffffffff;

/** An end record of 22 bytes, its comment, and before it the locator of the ZIP64 end record. */
const maxEndBytes = 22 + 65_535 + 20;
/** Room for the most entries with long names. */
const maxDirectoryBytes = 16_777_216;
/** Many times the inputs of a model: an archive of evaluation data has one entry for each. */
const maxEntries = 4096;
const chunkBytes = 262_144;

/**
 * Reads the directory of a ZIP archive (PKWARE APPNOTE 6.3.10, sections 4.3.12 to 4.3.16), ZIP64
 * included.
 * @throws RangeError or SyntaxError with the reason if the archive is damaged or has another
 * compression than deflate
 */
export async function readZipDirectory(file: FileHandle): Promise<ZipEntry[]> {
  const { offset, bytes } = await locateDirectory(file);
  if (bytes > maxDirectoryBytes) {
    const limit = `at most ${maxDirectoryBytes} are read`;
    throw new RangeError(`ZIP directory takes ${bytes} bytes; ${limit}`);
  }
  return parseDirectory(await readRange(file, offset, bytes));
}

async function locateDirectory(file: FileHandle): Promise<{ offset: number; bytes: number }> {
  const { size } = await file.stat();
  const tailStart = Math.max(0, size - maxEndBytes);
  const tail = await readRange(file, tailStart, size - tailStart);
  const end = locateEndRecord(tail);
  const isZip64 = end >= 20 && tail.readUInt32LE(end - 20) === end64LocatorSignature;
  if (!isZip64) return { offset: tail.readUInt32LE(end + 16), bytes: tail.readUInt32LE(end + 12) };
  const end64 = await readRange(file, readSafeInteger(tail, end - 20 + 8), 56);
  if (end64.readUInt32LE(0) !== end64Signature) {
    throw new SyntaxError("ZIP64 end record is missing");
  }
  return { offset: readSafeInteger(end64, 48), bytes: readSafeInteger(end64, 40) };
}

/** The decompressed bytes of an entry, as they come. A damaged entry makes the stream throw. */
export async function* readZipEntry(file: FileHandle, entry: ZipEntry): AsyncGenerator<Buffer> {
  const header = await readRange(file, entry.headerOffset, 30);
  if (header.readUInt32LE(0) !== localSignature) {
    throw new SyntaxError(`Header of "${entry.name}" is missing`);
  }
  const start = entry.headerOffset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  const stored = readChunks(file, start, start + entry.compressedBytes);
  if (entry.method === "stored") yield* stored;
  // Errors reach the consumer of the inflated bytes; the callback prevents that they are rethrown.
  else yield* pipeline(Readable.from(stored), createInflateRaw(), () => undefined);
}

async function* readChunks(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  for (let position = start; position < end; position += chunkBytes) {
    yield await readRange(file, position, Math.min(chunkBytes, end - position));
  }
}

function locateEndRecord(tail: Buffer): number {
  for (let offset = tail.length - 22; offset >= 0; offset--) {
    if (
      tail.readUInt32LE(offset) === endSignature &&
      offset + 22 + tail.readUInt16LE(offset + 20) === tail.length
    ) {
      return offset;
    }
  }
  throw new SyntaxError("No ZIP directory was found at the end of the file");
}

function parseDirectory(directory: Buffer): ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let offset = 0; offset < directory.length;) {
    const { entry, end } = parseEntry(directory, offset);
    entries.push(entry);
    if (entries.length > maxEntries) {
      throw new RangeError(`ZIP archive has more than ${maxEntries} entries`);
    }
    offset = end;
  }
  return entries;
}

function parseEntry(directory: Buffer, offset: number): { entry: ZipEntry; end: number } {
  if (offset + 46 > directory.length || directory.readUInt32LE(offset) !== entrySignature) {
    throw new SyntaxError("ZIP directory is damaged");
  }
  const nameEnd = offset + 46 + directory.readUInt16LE(offset + 28);
  const extraEnd = nameEnd + directory.readUInt16LE(offset + 30);
  const name = directory.toString("utf8", offset + 46, nameEnd);
  const [flags, method] = [directory.readUInt16LE(offset + 8), directory.readUInt16LE(offset + 10)];
  const sizes = parseEntrySizes(directory, offset, directory.subarray(nameEnd, extraEnd));
  return {
    entry: { name, method: parseCompressionMethod(name, flags, method), ...sizes },
    end: extraEnd + directory.readUInt16LE(offset + 32),
  };
}

function parseCompressionMethod(name: string, flags: number, method: number): ZipEntry["method"] {
  if ((flags & 1) === 1) throw new SyntaxError(`"${name}" is encrypted`);
  if (method === 0) return "stored";
  if (method === 8) return "deflated";
  throw new SyntaxError(
    `"${name}" has compression method ${method}; 0 (stored) and 8 (deflate) are read`,
  );
}

/** Sizes and offset that do not fit 32 bits are in the ZIP64 extra field, in this order. */
function parseEntrySizes(directory: Buffer, offset: number, extra: Buffer) {
  const wide = parseZip64Fields(extra);
  const fields = [24, 20, 42].map((at) => {
    const narrow = directory.readUInt32LE(offset + at);
    if (narrow !== absent32) return narrow;
    const value = wide.shift();
    if (value === undefined) throw new SyntaxError("ZIP directory is damaged");
    return value;
  });
  const [bytes = 0, compressedBytes = 0, headerOffset = 0] = fields;
  return { bytes, compressedBytes, headerOffset };
}

function parseZip64Fields(extra: Buffer): number[] {
  for (let offset = 0; offset + 4 <= extra.length;) {
    const length = extra.readUInt16LE(offset + 2);
    if (offset + 4 + length > extra.length) throw new SyntaxError("ZIP directory is damaged");
    if (extra.readUInt16LE(offset) === zip64Extra) {
      return Array.from({ length: Math.floor(Math.min(length, 24) / 8) }, (_, index) =>
        readSafeInteger(extra, offset + 4 + index * 8),
      );
    }
    offset += 4 + length;
  }
  return [];
}

function readSafeInteger(buffer: Buffer, offset: number): number {
  const value = Number(buffer.readBigUInt64LE(offset));
  if (!Number.isSafeInteger(value)) throw new RangeError("ZIP directory is damaged");
  return value;
}

async function readRange(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const endError = () => new RangeError("ZIP archive is truncated");
  await readExactly(file, buffer, position, endError);
  return buffer;
}
