import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Blob, Upload } from "./blob-store.ts";
import type { DiskSpace } from "./disk-space.ts";
import { statOrUndefined, storageError } from "./file-error.ts";
import { isProjectUpload, partialUploadPath } from "./partial-upload-path.ts";
import {
  createKeptUpload,
  type KeptUpload,
  takeKept,
  type UploadContent,
} from "./partial-uploads.ts";
import { receiveFile } from "./receive-file.ts";
import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";

interface PartialFilesOptions {
  /** Folder of uploads until they are complete. */
  readonly incoming: string;
  /** Makes a complete file a blob. */
  readonly publish: (file: string, sha256: string) => Promise<void>;
  readonly space: DiskSpace;
}

/**
 * Interrupted uploads as files: at their final names from the first byte, so that they survive
 * their process. One process at a time may receive uploads into a folder.
 */
export function createPartialFiles(options: PartialFilesOptions) {
  // What was measured of files that are kept, so that going on does not read them again.
  const kept = new Map<string, KeptUpload>();
  return {
    async findKept(name: string) {
      return (await statOrUndefined(path.join(options.incoming, name)))?.size;
    },
    async countKept(project: string, receiving: ReadonlyMap<string, unknown>) {
      const uploads = await listInterruptedUploads(options.incoming, project, receiving);
      return uploads.reduce((sum, { bytes }) => sum + bytes, 0);
    },
    receive: (upload: Upload, content: UploadContent) =>
      receivePartial({ ...options, kept }, upload, content),
  };
}

async function receivePartial(
  { incoming, publish, space, kept }: PartialFilesOptions & { kept: Map<string, KeptUpload> },
  upload: Upload,
  { source, offset, receiving, ...options }: UploadContent,
): Promise<Blob> {
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

interface InterruptedUpload {
  readonly file: string;
  readonly bytes: number;
  /** When it was written last, milliseconds since 1970. */
  readonly at: number;
}

/** A project's uploads that were interrupted and that nobody sends at present. */
async function listInterruptedUploads(
  incoming: string,
  project: string,
  receiving: ReadonlyMap<string, unknown>,
): Promise<InterruptedUpload[]> {
  const files = (await readdir(incoming))
    .filter((name) => isProjectUpload(project, name) && !receiving.has(name))
    .map((name) => path.join(incoming, name));
  const found = await Promise.all(
    files.map(async (file) => ({ file, stats: await statOrUndefined(file) })),
  );
  return found.flatMap(({ file, stats }) =>
    stats ? [{ file, bytes: stats.size, at: stats.mtimeMs }] : [],
  );
}

/**
 * Removes the oldest of a project's interrupted uploads where there is too much of them, but none
 * that is being received.
 * @returns their files
 */
async function removeExcess(
  incoming: string,
  project: string,
  receiving: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const found = await listInterruptedUploads(incoming, project, receiving);
  const newestFirst = found.toSorted((a, b) => b.at - a.at);
  const removed: string[] = [];
  let total = 0;
  for (const [i, { file, bytes }] of newestFirst.entries()) {
    total += bytes;
    if (i + 1 < limits.partialUploads && total <= limits.partialUploadBytes) continue;
    await rm(file, { force: true });
    removed.push(file);
  }
  return removed;
}
