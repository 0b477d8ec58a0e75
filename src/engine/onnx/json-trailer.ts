import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { readExactly, writeAllBytes } from "../../model-files/file-access.ts";

/** Largest trailer: a hundred times what a model of 10,000 weights needs, bytes. */
const maxTrailerBytes = 256 * 1024 * 1024;
/** At the very end of the file, the length of the trailer. */
const lengthBytes = 8;

interface JsonTrailer {
  /** Not checked yet. */
  readonly value: unknown;
  /** Bytes of the file before it. */
  readonly start: number;
}

/** Writes a value as JSON after the content of a file. @returns the file's size */
export async function writeJsonTrailer(
  handle: FileHandle,
  value: unknown,
  position: number,
): Promise<number> {
  const text = Buffer.from(JSON.stringify(value));
  const length = Buffer.alloc(lengthBytes);
  length.writeBigUInt64LE(BigInt(text.length));
  const bytes = Buffer.concat([text, length]);
  await writeAllBytes(handle, bytes, position);
  return position + bytes.length;
}

/** @throws Error if a file has no trailer */
export async function readJsonTrailer(file: string): Promise<JsonTrailer> {
  await using handle = await open(file, "r");
  const endError = () => new Error(`"${file}" is not a file with a trailer`);
  const { size } = await handle.stat();
  if (size < lengthBytes) throw endError();
  const bytes = Buffer.alloc(lengthBytes);
  await readExactly(handle, bytes, size - lengthBytes, endError);
  const length = Number(bytes.readBigUInt64LE());
  const start = size - lengthBytes - length;
  if (length > maxTrailerBytes || start < 0) throw endError();
  const text = Buffer.alloc(length);
  await readExactly(handle, text, start, endError);
  return { value: JSON.parse(text.toString()), start };
}
