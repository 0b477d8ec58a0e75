import { checkUploadOffset, maxReadings, tooManyReadingsError } from "../kept-uploads.ts";
import { incomingFolder } from "./incoming-uploads.ts";
import { countChunks, measureChunks, readChunkHead } from "./read-chunks.ts";
import type { S3Client } from "./s3-client.ts";
import {
  chunkBytes,
  createStoredChunks,
  removeChunks,
  type StoredChunks,
} from "./stored-chunks.ts";

/** An interrupted upload as far as it is known without reading it. */
export interface KeptChunks {
  readonly chunks: StoredChunks;
  /** How often it was read again since it was begun. */
  readonly readings: number;
}

/** What is kept of an upload before a byte. */
export async function takeKeptChunks(
  { client, kept }: { readonly client: S3Client; readonly kept: Map<string, KeptChunks> },
  name: string,
  offset: number,
): Promise<KeptChunks & { readonly head: Uint8Array }> {
  const folder = incomingFolder(name);
  const known = kept.get(name);
  kept.delete(name);
  const count = Math.floor(offset / chunkBytes);
  if (offset === 0) {
    await removeChunks(client, folder);
    return { chunks: createStoredChunks(), readings: 0, head: new Uint8Array() };
  }
  checkUploadOffset(offset, (await countChunks(client, folder)) * chunkBytes);
  const bytes = offset - count * chunkBytes;
  const head = await readChunkHead(client, folder, { index: count, bytes });
  await removeChunks(client, folder, count);
  if (known?.chunks.meter.bytes === count * chunkBytes) return { ...known, head };
  const readings = (known?.readings ?? 0) + 1;
  if (readings > maxReadings) {
    await removeChunks(client, folder);
    throw tooManyReadingsError();
  }
  return { chunks: await measureChunks(client, folder, count), readings, head };
}
