import { rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../contract/errors.ts";
import type { Blob, BlobStore, ReceiveOptions, Upload } from "./blob-store.ts";
import type { DiskSpace } from "./disk-space.ts";
import { statOrUndefined, storageError } from "./file-error.ts";
import { createKeptUpload, type KeptUpload, takeKept, uploadOffsetError } from "./kept-uploads.ts";
import { partialUploadPath } from "./partial-upload-path.ts";
import { receiveFile } from "./receive-file.ts";
import { removeExcess } from "./remove-excess.ts";

/** How much later than its sender the service may notice a broken connection. */
const noticeMs = 2_000;

interface PartialUploadOptions {
  /** Folder of uploads until they are complete. */
  readonly incoming: string;
  /** Makes a complete file a blob. */
  readonly publish: (file: string, sha256: string) => Promise<void>;
  /** Stores content without resumption; leaves nothing behind when it fails. */
  readonly write: BlobStore["write"];
  readonly space: DiskSpace;
}

interface PartialUploads extends PartialUploadOptions {
  /** Files that are being written, each until its promise resolves. */
  readonly receiving: Map<string, Promise<unknown>>;
  /** What was measured of files that are kept, so that going on does not read them again. */
  readonly kept: Map<string, KeptUpload>;
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
  const { incoming, publish, space, kept, receiving } = uploads;
  const { sha256: expectedSha256 } = upload;
  const file = partialUploadPath(incoming, upload);
  const present = offset > 0 ? await takeKept(kept, file, offset) : createKeptUpload();
  kept.delete(file);
  try {
    const received = { ...options, offset, expectedSha256, meter: present.meter };
    const blob = await receiveFile(file, space.guard(source), received);
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
    const removed = await removeExcess(incoming, upload.project, receiving);
    for (const excess of removed) kept.delete(excess);
    throw failure;
  }
}
