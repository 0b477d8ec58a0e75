import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import type { Blob, ReceiveOptions, WriteOptions } from "./blob-store.ts";
import { ServiceError } from "../contract/errors.ts";
import { writeAllBytes } from "../model-files/file-access.ts";
import { readPieces } from "../model-files/read-pieces.ts";

interface ReceiveFileOptions extends WriteOptions, ReceiveOptions {
  /** Knows what of the content is in the file already: nothing, by default. */
  readonly meter?: ContentMeter;
}

/**
 * Writes a source into a file, after its first `offset` bytes, and flushes it to the disk. What
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
  const blob = meter.digest();
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
  const message = `The content has more bytes than the ${maxBytes} allowed`;
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
  for await (const piece of readPieces(path, signal)) meter.add(piece);
}

/** Size and hash of content as it comes. */
export interface ContentMeter {
  readonly bytes: number;
  add(chunk: Uint8Array): void;
  /** What came so far; more may follow. */
  digest(): Blob;
}

export function createContentMeter(): ContentMeter {
  const hash = createHash("sha256");
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    add(chunk) {
      bytes += chunk.byteLength;
      hash.update(chunk);
    },
    digest: () => ({ sha256: hash.copy().digest("hex"), bytes }),
  };
}

/**
 * Writes a source piece by piece. Also a source that is stuck ends when the signal is aborted; no
 * write is under way any more when this has ended.
 */
export async function writePieces(
  source: AsyncIterable<Uint8Array>,
  write: (piece: Uint8Array) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const pieces = source[Symbol.asyncIterator]();
  let isRead = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await unlessAborted(pieces.next(), signal);
      isRead = done === true;
      if (isRead) return;
      await write(value);
    }
  } finally {
    // Not awaited: what is stuck does not end either.
    if (!isRead) void pieces.return?.().catch(() => {});
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return promise;
}

/** Writes content to a file from a position on. */
export async function writeStream(
  file: FileHandle,
  source: AsyncIterable<Uint8Array>,
  start: number,
): Promise<void> {
  let position = start;
  for await (const chunk of source) {
    await writeAllBytes(file, chunk, position);
    position += chunk.length;
  }
}

/** Makes the names of what a folder contains survive a power failure. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync();
}
