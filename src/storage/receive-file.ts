import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { ServiceError } from "../contract/errors.ts";
import type { Blob, ReceiveOptions, WriteOptions } from "./blob-store.ts";

/**
 * Writes a source into a file, behind its first `offset` bytes, and flushes it to the disk. What
 * arrived before a failure stays in the file.
 * @throws ServiceError payload_too_large or model_checksum_mismatch
 */
export async function receiveFile(
  path: string,
  source: AsyncIterable<Uint8Array>,
  { offset = 0, expectedSha256, maxBytes = Infinity, signal }: WriteOptions & ReceiveOptions,
): Promise<Blob> {
  const meter = createContentMeter(maxBytes);
  const file = await open(path, offset > 0 ? "r+" : "w");
  const output = file.createWriteStream({ start: offset });
  const closed = new Promise<void>((resolve) => output.once("close", resolve));
  try {
    if (offset > 0) await measureStart(file, { path, offset, meter, signal });
    const measureChunks = (chunks: AsyncIterable<Uint8Array>) => meterChunks(chunks, meter);
    await pipeline(source, measureChunks, output, signal ? { signal } : {});
  } finally {
    output.destroy();
    // A write may still be under way after a failure.
    await closed;
  }
  const blob = meter.finish();
  if (expectedSha256 !== undefined && blob.sha256 !== expectedSha256) {
    const message = `Content has SHA-256 ${blob.sha256}, expected ${expectedSha256}`;
    throw new ServiceError("model_checksum_mismatch", message);
  }
  await using received = await open(path, "r+");
  await received.sync();
  return blob;
}

interface ContentMeter {
  add(chunk: Uint8Array): void;
  finish(): Blob;
}

function createContentMeter(maxBytes: number): ContentMeter {
  const hash = createHash("sha256");
  let bytes = 0;
  return {
    add(chunk) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) {
        const message = `Content is larger than the allowed ${maxBytes} bytes`;
        throw new ServiceError("payload_too_large", message);
      }
      hash.update(chunk);
    },
    finish: () => ({ sha256: hash.digest("hex"), bytes }),
  };
}

async function* meterChunks(
  chunks: AsyncIterable<Uint8Array>,
  meter: ContentMeter,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    meter.add(chunk);
    yield chunk;
  }
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
