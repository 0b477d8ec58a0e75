import { rm } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import type { Blob, BlobStore, ReceiveOptions, Upload } from "./blob-store.ts";
import { statOrUndefined } from "./file-error.ts";
import { partialUploadName } from "./partial-upload-path.ts";
import { type ContentMeter, createContentMeter } from "./receive-file.ts";
import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import { manifest, type ModelFile, type StoredUpload } from "../contract/models/manifest.ts";
import { jsonValue } from "../contract/text/json-value.ts";

/** How much later than its sender the service may notice a broken connection. */
const noticeMs = 2_000;

export interface UploadContent extends ReceiveOptions {
  readonly source: AsyncIterable<Uint8Array>;
  readonly offset: number;
  /** All uploads that are being received now, by their names. */
  readonly receiving: ReadonlyMap<string, unknown>;
}

/** Where interrupted uploads are kept, each by its name. */
interface PartialUploadOptions {
  /** Bytes that are kept of an upload; undefined for none. */
  findKept(this: void, name: string): Promise<number | undefined>;
  /** Bytes that are kept of a project's uploads which nobody sends at present. */
  countKept(this: void, project: string, receiving: ReadonlyMap<string, unknown>): Promise<number>;
  /** Stores an upload, or keeps what arrived of it. */
  receive(this: void, upload: Upload, content: UploadContent): Promise<Blob>;
  /** Stores content without resumption; leaves nothing behind when it fails. */
  readonly write: BlobStore["write"];
}

interface PartialUploads extends PartialUploadOptions {
  /** Uploads that are being received, each until its promise resolves. */
  readonly receiving: Map<string, Promise<unknown>>;
}

/**
 * Uploads that can be resumed after their sender was lost, one for each hash and owner. Of two
 * requests that send the same, one is kept.
 */
export function createPartialUploads(
  options: PartialUploadOptions,
): Pick<BlobStore, "keptBytes" | "findPartial" | "receive"> {
  const uploads: PartialUploads = { ...options, receiving: new Map() };
  return {
    keptBytes: (project) => options.countKept(project, uploads.receiving),
    findPartial: (upload) => findPartial(uploads, partialUploadName(upload)),
    receive: (upload, source, receiveOptions = {}) =>
      receiveUpload(uploads, upload, { source, ...receiveOptions }),
  };
}

async function findPartial(
  { findKept, receiving }: PartialUploads,
  name: string,
): Promise<{ bytes: number } | undefined> {
  const ended = receiving.get(name);
  if (ended) await Promise.race([ended, delay(noticeMs, undefined, { ref: false })]);
  if (receiving.has(name)) return undefined;
  const bytes = await findKept(name);
  return bytes === undefined ? undefined : { bytes };
}

async function receiveUpload(
  { receive, receiving, write }: PartialUploads,
  upload: Upload,
  content: Pick<UploadContent, "source"> & ReceiveOptions,
): Promise<Blob> {
  const { source, offset = 0, ...options } = content;
  const name = partialUploadName(upload);
  if (receiving.has(name)) {
    if (offset === 0) return write(source, { ...options, expectedSha256: upload.sha256 });
    const reason = "while another request sends it: start at byte 0";
    throw uploadOffsetError(`The upload cannot continue at byte ${offset} ${reason}`, 0);
  }
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  receiving.set(name, ended);
  try {
    return await receive(upload, { ...options, source, offset, receiving });
  } finally {
    receiving.delete(name);
    end();
  }
}

/** How often an interrupted upload is read again because it goes on elsewhere than at its end. */
export const maxReadings = 3;

/** An interrupted upload as far as it is known without its file. */
export interface KeptUpload {
  readonly meter: ContentMeter;
  /** How often the file was read again since it was begun. */
  readonly readings: number;
}

export function createKeptUpload(): KeptUpload {
  return { meter: createContentMeter(), readings: 0 };
}

/**
 * What is known of an upload that goes on at a byte.
 * @throws ServiceError upload_offset_mismatch
 */
export async function takeKept(
  kept: Map<string, KeptUpload>,
  file: string,
  offset: number,
): Promise<KeptUpload> {
  const keptBytes = (await statOrUndefined(file))?.size ?? 0;
  checkUploadOffset(offset, keptBytes);
  const known = kept.get(file) ?? createKeptUpload();
  if (known.meter.bytes === offset && keptBytes === offset) return known;
  const readings = known.readings + 1;
  if (readings <= maxReadings) return { ...createKeptUpload(), readings };
  kept.delete(file);
  await rm(file, { force: true });
  throw tooManyReadingsError();
}

export function tooManyReadingsError(): ServiceError {
  return uploadOffsetError("The upload was continued too often before its end: start at byte 0", 0);
}

/** @throws ServiceError upload_offset_mismatch */
export function checkUploadOffset(offset: number, keptBytes: number): void {
  if (offset <= keptBytes) return;
  const reason = `${keptBytes} bytes are kept, so it may continue at ${keptBytes} or before`;
  throw uploadOffsetError(`The upload cannot continue at byte ${offset}: ${reason}`, keptBytes);
}

function uploadOffsetError(message: string, allowedOffset: number): ServiceError {
  const headers = { "upload-offset": String(allowedOffset) };
  return new ServiceError("upload_offset_mismatch", message, { headers });
}

type ReadableBlobs = Pick<BlobStore, "find" | "read">;

const manifestText = jsonValue.pipe(manifest);
/** Each is a request where blobs lie in a bucket, and a manifest names up to 1,000 files. */
const findsAtOnce = 16;

/** A stored file, with those that it names as a manifest; undefined where it is not stored. */
export async function findStoredUpload(
  blobs: ReadableBlobs,
  sha256: string,
): Promise<StoredUpload | undefined> {
  const found = await blobs.find(sha256);
  if (found === undefined) return undefined;
  const { bytes } = found;
  const isText = bytes <= limits.manifestBytes;
  return { sha256, bytes, files: isText ? await listNamedFiles(blobs, sha256) : [] };
}

/** None of a manifest whose files are not all stored. */
async function listNamedFiles(blobs: ReadableBlobs, sha256: string): Promise<ModelFile[]> {
  const { data } = manifestText.safeParse(await text(blobs.read(sha256)));
  const named = data?.files ?? [];
  const files: ModelFile[] = [];
  for (let start = 0; start < named.length; start += findsAtOnce) {
    const group = named.slice(start, start + findsAtOnce);
    const found = await Promise.all(group.map((file) => blobs.find(file.sha256)));
    const stored = group.flatMap((file, i) => (found[i] ? [{ ...file, ...found[i] }] : []));
    if (stored.length < group.length) return [];
    files.push(...stored);
  }
  return files;
}
