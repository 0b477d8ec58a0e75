import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import type { Blob, BlobStore, ReceiveOptions, Upload } from "./blob-store.ts";
import { type ContentMeter, createContentMeter } from "./content-meter.ts";
import { statOrUndefined, storageError } from "./file-error.ts";
import { receiveFile } from "./receive-file.ts";

/** How much later than its sender the service may notice a broken connection. */
const noticeMs = 2_000;
const suffix = ".partial";
/** How often an interrupted upload is read again because it goes on elsewhere than at its end. */
const maxReadings = 3;

interface PartialUploadOptions {
  /** Folder of uploads until they are complete. */
  readonly incoming: string;
  /** Makes a complete file a blob. */
  readonly publish: (file: string, sha256: string) => Promise<void>;
  /** Stores content without resumption; leaves nothing behind when it fails. */
  readonly write: BlobStore["write"];
}

interface PartialUploads extends PartialUploadOptions {
  /** Files that are being written, each until its promise resolves. */
  readonly receiving: Map<string, Promise<unknown>>;
  /** What was measured of files that are kept, so that going on does not read them again. */
  readonly kept: Map<string, KeptUpload>;
}

interface KeptUpload {
  readonly meter: ContentMeter;
  /** How often the file was read again since it was begun. */
  readonly readings: number;
}

/**
 * Uploads that can be resumed after their sender was lost: one file for each hash and owner, at its
 * final name from the first byte, so that it survives its process. One process at a time may
 * receive uploads into a folder.
 */
export function createPartialUploads(
  options: PartialUploadOptions,
): Pick<BlobStore, "findPartial" | "receive"> {
  const uploads: PartialUploads = {
    ...options,
    receiving: new Map(),
    kept: new Map(),
  };
  return {
    findPartial: (upload) => findPartial(uploads, upload),
    receive: (upload, source, receiveOptions = {}) =>
      receiveUpload(uploads, upload, { source, ...receiveOptions }),
  };
}

/** Whether a file of the folder is an upload that can be resumed. */
export function isPartialUpload(name: string): boolean {
  return name.endsWith(suffix);
}

async function findPartial(
  { incoming, receiving }: PartialUploads,
  upload: Upload,
): Promise<{ bytes: number } | undefined> {
  const file = partialUploadPath(incoming, upload);
  const ended = receiving.get(file);
  if (ended) await Promise.race([ended, delay(noticeMs, undefined, { ref: false })]);
  if (receiving.has(file)) return undefined;
  const stats = await statOrUndefined(file);
  return stats && { bytes: stats.size };
}

interface UploadContent extends ReceiveOptions {
  readonly source: AsyncIterable<Uint8Array>;
}

async function receiveUpload(
  uploads: PartialUploads,
  upload: Upload,
  content: UploadContent,
): Promise<Blob> {
  const { receiving, write } = uploads;
  const { source, offset = 0, ...options } = content;
  const file = partialUploadPath(uploads.incoming, upload);
  if (receiving.has(file)) {
    if (offset === 0) return write(source, { ...options, expectedSha256: upload.sha256 });
    const reason = "while another request sends it: only from 0";
    throw uploadOffsetError(`The upload cannot go on at byte ${offset} ${reason}`, 0);
  }
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  receiving.set(file, ended);
  try {
    return await receivePartial(uploads, upload, { ...content, offset });
  } finally {
    receiving.delete(file);
    end();
  }
}

async function receivePartial(
  uploads: PartialUploads,
  upload: Upload,
  { source, offset, ...options }: UploadContent & { readonly offset: number },
): Promise<Blob> {
  const { incoming, publish, kept } = uploads;
  const { sha256: expectedSha256 } = upload;
  const file = partialUploadPath(incoming, upload);
  const present = offset > 0 ? await takeKept(uploads, file, offset) : freshUpload();
  kept.delete(file);
  try {
    const { meter } = present;
    const blob = await receiveFile(file, source, { ...options, offset, expectedSha256, meter });
    await publish(file, expectedSha256);
    return blob;
  } catch (error) {
    const failure = storageError(error);
    // Refused content cannot be resumed.
    if (failure instanceof ServiceError) {
      await rm(file, { force: true });
      throw failure;
    }
    kept.set(file, present);
    await removeExcess(uploads, upload.project);
    throw failure;
  }
}

function freshUpload(): KeptUpload {
  return { meter: createContentMeter(), readings: 0 };
}

/** @throws ServiceError upload_offset_mismatch */
async function takeKept(
  { kept }: PartialUploads,
  file: string,
  offset: number,
): Promise<KeptUpload> {
  const keptBytes = (await statOrUndefined(file))?.size ?? 0;
  checkUploadOffset(offset, keptBytes);
  const known = kept.get(file) ?? freshUpload();
  if (known.meter.bytes === offset && keptBytes === offset) return known;
  const readings = known.readings + 1;
  if (readings <= maxReadings) return { ...freshUpload(), readings };
  kept.delete(file);
  await rm(file, { force: true });
  throw uploadOffsetError("The upload was continued too often before its end: only from 0", 0);
}

/** Removes the oldest of a project's other interrupted uploads where there is too much of them. */
async function removeExcess({ incoming, receiving, kept }: PartialUploads, project: string) {
  const names = await readdir(incoming);
  const files = names
    .filter((name) => isPartialUpload(name) && name.startsWith(filePrefix(project)))
    .map((name) => path.join(incoming, name))
    .filter((file) => !receiving.has(file));
  const found = await Promise.all(
    files.map(async (file) => ({ file, stats: await statOrUndefined(file) })),
  );
  const newestFirst = found
    .flatMap(({ file, stats }) => (stats ? [{ file, size: stats.size, at: stats.mtimeMs }] : []))
    .toSorted((a, b) => b.at - a.at);
  let bytes = 0;
  for (const [i, { file, size }] of newestFirst.entries()) {
    bytes += size;
    if (i + 1 < limits.partialUploads && bytes <= limits.partialUploadBytes) continue;
    kept.delete(file);
    await rm(file, { force: true });
  }
}

function filePrefix(project: string): string {
  return `${encodeURIComponent(project)}.`;
}

/** Owners are hashed: their names may be longer than those of files. */
function partialUploadPath(incoming: string, { sha256, project, owner }: Upload): string {
  const ownerHash = createHash("sha256").update(owner).digest("hex").slice(0, 32);
  return path.join(incoming, `${filePrefix(project)}${ownerHash}.${sha256}${suffix}`);
}

function checkUploadOffset(offset: number, keptBytes: number): void {
  if (offset <= keptBytes) return;
  const reason = `${keptBytes} bytes are kept, so ${keptBytes} or less is allowed`;
  throw uploadOffsetError(`The upload cannot go on at byte ${offset}: ${reason}`, keptBytes);
}

function uploadOffsetError(message: string, allowedOffset: number): ServiceError {
  const headers = { "upload-offset": String(allowedOffset) };
  return new ServiceError("upload_offset_mismatch", message, { headers });
}
