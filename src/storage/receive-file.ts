import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { ServiceError } from "../contract/errors.ts";
import type { Blob, ReceiveOptions, WriteOptions } from "./blob-store.ts";

/**
 * Fills a file from a source, behind its first `offset` bytes, and flushes it to the disk. What arrived before a failure is
 * in the file.
 * @throws ServiceError payload_too_large or model_checksum_mismatch
 */
export async function receiveFile(
  path: string,
  source: AsyncIterable<Uint8Array>,
  { offset = 0, expectedSha256, maxBytes = Infinity, signal }: WriteOptions & ReceiveOptions,
): Promise<Blob> {
  const hash = createHash("sha256");
  let bytes = 0;
  const measure = (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      throw new ServiceError(
        "payload_too_large",
        `Content is larger than the allowed ${maxBytes} bytes`,
      );
    }
    hash.update(chunk);
  };
  const measureChunks = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      measure(chunk);
      yield chunk;
    }
  };
  const file = await open(path, offset > 0 ? "r+" : "w");
  const output = file.createWriteStream({ start: offset });
  const closed = new Promise<void>((resolve) => output.once("close", resolve));
  try {
    if (offset > 0) {
      await file.truncate(offset);
      const kept = createReadStream(path, { highWaterMark: 1 << 20, ...(signal && { signal }) });
      for await (const chunk of kept) measure(chunk);
    }
    await pipeline(source, measureChunks, output, { ...(signal && { signal }) });
  } finally {
    output.destroy();
    // A write may still be under way after a failure.
    await closed;
  }
  const sha256 = hash.digest("hex");
  if (expectedSha256 !== undefined && sha256 !== expectedSha256) {
    throw new ServiceError(
      "model_checksum_mismatch",
      `Content has SHA-256 ${sha256}, expected ${expectedSha256}`,
    );
  }
  await using received = await open(path, "r+");
  await received.sync();
  return { sha256, bytes };
}
