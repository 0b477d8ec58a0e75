import { KeyedSemaphore } from "../../limits/keyed-semaphore.ts";
import { randomUUID } from "node:crypto";
import { incomingFolder, listKeptUploads, removeExcessUploads } from "./incoming-uploads.ts";
import { blobKey, findObject, listObjects } from "./objects.ts";
import { readObject } from "./read-object.ts";
import { isUnavailable, type S3Client } from "./s3-client.ts";
import {
  chunkBytes,
  chunkKey,
  createStoredChunks,
  joinChunks,
  removeChunks,
  storeChunks,
  type StoredChunks,
} from "./stored-chunks.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Blob, Upload, WriteOptions } from "../blob-store.ts";
import { partialUploadName } from "../partial-upload-path.ts";
import {
  checkUploadOffset,
  maxReadings,
  tooManyReadingsError,
  type UploadContent,
} from "../partial-uploads.ts";
import { finishContent } from "../receive-file.ts";

/** Half of the time for which a released blob is kept. */
const renewedAfterMs = 30 * 60_000;

interface ChunkedUploads {
  readonly client: S3Client;
  readonly kept: Map<string, KeptChunks>;
}

/** Content that arrives: stored as chunks, and joined when its hash is known. */
export function createChunkedUploads(client: S3Client) {
  const uploads: ChunkedUploads = { client, kept: new Map() };
  const limitUpload = limitUploads();
  return {
    async findKept(name: string): Promise<number | undefined> {
      const count = await countChunks(client, incomingFolder(name));
      return count === 0 ? undefined : count * chunkBytes;
    },
    async countKept(project: string, receiving: ReadonlyMap<string, unknown>) {
      const interrupted = await listKeptUploads(client, project, receiving);
      return interrupted.reduce((sum, { bytes }) => sum + bytes, 0);
    },
    receive: (upload: Upload, content: UploadContent) =>
      limitUpload(upload.project, () => receiveUploadChunks(uploads, upload, content)),
    write: (source: AsyncIterable<Uint8Array>, options: WriteOptions = {}) =>
      limitUpload(undefined, () => writeChunks(client, source, options)),
  };
}

/** Uploads at once, each of which takes the memory of a chunk. */
const uploadsAtOnce = { ofProjects: { all: 48, perKey: 8 }, ofWorkers: 16 };
const retrySeconds = 10;

/**
 * Bounds how many files arrive at once: of each project, so that one does not keep out the others,
 * and apart from them of workers, whose project is undefined here.
 * @throws ServiceError unavailable
 */
export function limitUploads() {
  const ofProjects = new KeyedSemaphore(uploadsAtOnce.ofProjects);
  const ofWorkers = new KeyedSemaphore({ perKey: uploadsAtOnce.ofWorkers });
  return async <T>(project: string | undefined, transfer: () => Promise<T>): Promise<T> => {
    const semaphore = project === undefined ? ofWorkers : ofProjects;
    using held = semaphore.tryAcquire(project ?? "");
    if (held !== undefined) return await transfer();
    const message = "More files arrive at once than there is room for";
    const headers = { "retry-after": String(retrySeconds) };
    throw new ServiceError("unavailable", message, { headers });
  };
}

async function writeChunks(
  client: S3Client,
  source: AsyncIterable<Uint8Array>,
  { expectedSha256, maxBytes = Infinity, signal }: WriteOptions,
): Promise<Blob> {
  const folder = incomingFolder(`.${randomUUID()}`);
  const chunks = createStoredChunks();
  const content = { chunks, head: new Uint8Array(), source, maxBytes, signal };
  const remove = async () => {
    if (chunks.etags.length > 0) await removeChunks(client, folder);
  };
  try {
    const tail = await storeChunks(client, folder, content);
    const blob = await publishChunks(client, { folder, chunks, tail, expectedSha256, signal });
    await remove();
    return blob;
  } catch (error) {
    if (!isUnavailable(error)) await remove();
    throw error;
  }
}

async function receiveUploadChunks(
  uploads: ChunkedUploads,
  upload: Upload,
  { source, offset, receiving, maxBytes = Infinity, signal }: UploadContent,
): Promise<Blob> {
  const { client, kept } = uploads;
  const name = partialUploadName(upload);
  const folder = incomingFolder(name);
  const { head, ...present } = await takeKeptChunks(uploads, name, offset);
  const { chunks } = present;
  try {
    const tail = await storeChunks(client, folder, { chunks, head, source, maxBytes, signal });
    const content = { folder, chunks, tail, expectedSha256: upload.sha256, signal };
    const blob = await publishChunks(client, content);
    await removeChunks(client, folder);
    return blob;
  } catch (error) {
    // Refused content cannot be resumed.
    if (error instanceof ServiceError && !isUnavailable(error)) {
      await removeChunks(client, folder);
      throw error;
    }
    kept.set(name, present);
    if (isUnavailable(error)) throw error;
    const removed = await removeExcessUploads(client, upload, receiving);
    for (const excess of removed) kept.delete(excess);
    throw error;
  }
}

interface MeasuredContent {
  readonly folder: string;
  readonly chunks: StoredChunks;
  readonly tail: Uint8Array;
  readonly expectedSha256: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** @throws ServiceError model_checksum_mismatch */
async function publishChunks(
  client: S3Client,
  { folder, chunks: { meter, etags }, tail, expectedSha256, signal }: MeasuredContent,
): Promise<Blob> {
  meter.add(tail);
  const blob = finishContent(meter, expectedSha256);
  const key = blobKey(blob.sha256);
  const present = await findObject(client, key);
  // One that was stored long ago may be deleted at this moment, since no record names it.
  if (present === undefined || Date.now() - present.modifiedAt.getTime() > renewedAfterMs) {
    await joinChunks(client, key, { folder, etags, tail, signal });
  }
  return blob;
}

/** An interrupted upload as far as it is known without reading it. */
interface KeptChunks {
  readonly chunks: StoredChunks;
  /** How often it was read again since it was begun. */
  readonly readings: number;
}

/** What is kept of an upload before a byte. */
async function takeKeptChunks(
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

/** How many chunks of an upload are there without a gap. */
async function countChunks(client: S3Client, folder: string): Promise<number> {
  let count = 0;
  for await (const { key, bytes } of listObjects(client, folder)) {
    if (key !== chunkKey(folder, count) || bytes !== chunkBytes) break;
    count++;
  }
  return count;
}

/** Reads the first chunks of an upload to measure them. */
async function measureChunks(
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
async function readChunkHead(
  client: S3Client,
  folder: string,
  { index, bytes }: { readonly index: number; readonly bytes: number },
): Promise<Uint8Array> {
  if (bytes === 0) return new Uint8Array();
  const range = { end: bytes - 1 };
  return Buffer.concat(await Array.fromAsync(readObject(client, chunkKey(folder, index), range)));
}
