import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";
import type { Blob, ReceiveOptions, WriteOptions } from "./blob-store.ts";
import { type ContentMeter, createContentMeter } from "./content-meter.ts";
import { writeAllBytes } from "./write-all-bytes.ts";
import { writePieces } from "./write-pieces.ts";

interface ReceiveFileOptions extends WriteOptions, ReceiveOptions {
  /** Knows what of the content is in the file already: nothing, by default. */
  readonly meter?: ContentMeter;
}

/**
 * Writes a source into a file, behind its first `offset` bytes, and flushes it to the disk. What
 * arrived before a failure stays in the file, and the meter knows it.
 * @throws ServiceError payload_too_large or model_checksum_mismatch
 */
export async function receiveFile(
  path: string,
  source: AsyncIterable<Uint8Array>,
  { meter = createContentMeter(), expectedSha256, ...options }: ReceiveFileOptions,
): Promise<Blob> {
  await writeSource(path, source, { meter, ...options });
  return finishContent(meter, expectedSha256);
}

/** @throws ServiceError model_checksum_mismatch */
export function finishContent(meter: ContentMeter, expectedSha256: string | undefined): Blob {
  const blob = meter.finish();
  if (expectedSha256 !== undefined && blob.sha256 !== expectedSha256) {
    const message = `Content has SHA-256 ${blob.sha256}, expected ${expectedSha256}`;
    throw new ServiceError("model_checksum_mismatch", message);
  }
  return blob;
}

async function writeSource(
  path: string,
  source: AsyncIterable<Uint8Array>,
  { offset = 0, maxBytes = Infinity, signal, meter }: ReceiveOptions & { meter: ContentMeter },
): Promise<void> {
  await using file = await open(path, offset > 0 ? "r+" : "w");
  if (meter.bytes !== offset) await measureStart(file, { path, offset, meter, signal });
  const write = async (chunk: Uint8Array) => {
    checkContentSize(meter.bytes + chunk.byteLength, maxBytes);
    await writeAllBytes(file, chunk, meter.bytes);
    meter.add(chunk);
  };
  await writePieces(source, write, signal);
  await file.sync();
}

/** @throws ServiceError payload_too_large */
export function checkContentSize(bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  const message = `Content is larger than the allowed ${maxBytes} bytes`;
  throw new ServiceError("payload_too_large", message);
}

interface FileStart {
  readonly path: string;
  readonly offset: number;
  readonly meter: ContentMeter;
  readonly signal: AbortSignal | undefined;
}

/** Cuts a file to its first bytes and measures them. */
async function measureStart(
  file: FileHandle,
  { path, offset, meter, signal }: FileStart,
): Promise<void> {
  await file.truncate(offset);
  const kept = createReadStream(path, { highWaterMark: 1 << 20, signal });
  for await (const chunk of kept) meter.add(chunk);
}
