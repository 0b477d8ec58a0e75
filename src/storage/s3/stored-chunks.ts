import {
  checkContentSize,
  type ContentMeter,
  createContentMeter,
  writePieces,
} from "../receive-file.ts";
import { assembleObject } from "./assemble-object.ts";
import { listObjects, putObject, removeObjects } from "./objects.ts";
import type { S3Client } from "./s3-client.ts";

/**
 * Size of the objects that hold an upload until it is complete, bytes: at least S3's smallest part,
 * and the memory that an upload takes.
 */
export const chunkBytes = 8 * 1024 ** 2;
/** S3 joins so many parts at most. */
const maxChunks = 10_000;
/** Largest content, bytes. */
export const maxContentBytes = maxChunks * chunkBytes;

/** First chunks of an upload, all of them full. */
export interface StoredChunks {
  /** What all of them hold. */
  readonly meter: ContentMeter;
  /** Versions of what was measured, in order. */
  readonly etags: string[];
}

export function createStoredChunks(): StoredChunks {
  return { meter: createContentMeter(), etags: [] };
}

interface ChunkedContent {
  readonly chunks: StoredChunks;
  /** What lies between the chunks and the source: less than a chunk. */
  readonly head: Uint8Array;
  readonly source: AsyncIterable<Uint8Array>;
  readonly maxBytes: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Stores a source as further chunks, below a folder.
 * @returns what is after the last full chunk, not measured yet
 * @throws ServiceError payload_too_large
 */
export async function storeChunks(
  client: S3Client,
  folder: string,
  { chunks, head, source, maxBytes, signal }: ChunkedContent,
): Promise<Uint8Array> {
  const { meter, etags } = chunks;
  const buffer = Buffer.allocUnsafe(chunkBytes);
  buffer.set(head);
  let filled = head.length;
  const storeChunk = async () => {
    const key = chunkKey(folder, etags.length);
    const { etag } = await putObject(client, key, { content: buffer, signal });
    etags.push(etag);
    meter.add(buffer);
    filled = 0;
  };
  const add = async (piece: Uint8Array) => {
    checkContentSize(meter.bytes + filled + piece.length, Math.min(maxBytes, maxContentBytes));
    for (let taken = 0; taken < piece.length;) {
      const part = piece.subarray(taken, taken + chunkBytes - filled);
      buffer.set(part, filled);
      taken += part.length;
      filled += part.length;
      if (filled === chunkBytes) await storeChunk();
    }
  };
  await writePieces(source, add, signal);
  return buffer.subarray(0, filled);
}

interface MeasuredChunks {
  readonly folder: string;
  readonly etags: readonly string[];
  readonly tail: Uint8Array;
  readonly signal: AbortSignal | undefined;
}

/** Makes chunks and what is after them one object. */
export async function joinChunks(
  client: S3Client,
  key: string,
  { folder, etags, tail, signal }: MeasuredChunks,
): Promise<void> {
  if (etags.length === 0) {
    await putObject(client, key, { content: tail, signal });
    return;
  }
  const parts = etags.map((etag, i) => ({ key: chunkKey(folder, i), etag }));
  await assembleObject(client, key, { parts, tail, signal });
}

export async function removeChunks(client: S3Client, folder: string, first = 0): Promise<void> {
  const found = await Array.fromAsync(listObjects(client, folder), ({ key }) => key);
  await removeObjects(
    client,
    found.filter((key) => key >= chunkKey(folder, first)),
  );
}

/** Numbers of one length, so that keys are listed in their order. */
export function chunkKey(folder: string, index: number): string {
  return `${folder}${String(index).padStart(5, "0")}`;
}
