import { listObjects } from "./objects.ts";
import { readObject } from "./read-object.ts";
import type { S3Client } from "./s3-client.ts";
import { chunkBytes, chunkKey, createStoredChunks, type StoredChunks } from "./stored-chunks.ts";

/** How many chunks of an upload are there without a gap. */
export async function countChunks(client: S3Client, folder: string): Promise<number> {
  let count = 0;
  for await (const { key, bytes } of listObjects(client, folder)) {
    if (key !== chunkKey(folder, count) || bytes !== chunkBytes) break;
    count++;
  }
  return count;
}

/** Reads the first chunks of an upload to measure them. */
export async function measureChunks(
  client: S3Client,
  folder: string,
  count: number,
): Promise<StoredChunks> {
  const chunks = createStoredChunks();
  const onEtag = (etag: string) => void chunks.etags.push(etag);
  for (let i = 0; i < count; i++) {
    for await (const piece of readObject(client, chunkKey(folder, i), { onEtag })) {
      chunks.meter.add(piece);
    }
  }
  return chunks;
}

/** The first bytes of a chunk. */
export async function readChunkHead(
  client: S3Client,
  folder: string,
  { index, bytes }: { readonly index: number; readonly bytes: number },
): Promise<Uint8Array> {
  if (bytes === 0) return new Uint8Array();
  const range = { end: bytes - 1 };
  return Buffer.concat(await Array.fromAsync(readObject(client, chunkKey(folder, index), range)));
}
