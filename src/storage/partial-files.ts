import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { Blob, Upload } from "./blob-store.ts";
import type { DiskSpace } from "./disk-space.ts";
import { statOrUndefined, storageError } from "./file-error.ts";
import { isProjectUpload, partialUploadName, partialUploadPath } from "./partial-upload-path.ts";
import {
  createKeptUpload,
  type KeptUpload,
  takeKept,
  type UploadContent,
} from "./partial-uploads.ts";
import { receiveFile } from "./receive-file.ts";
import { selectExcessUploads } from "./select-excess-uploads.ts";
import { ServiceError } from "../contract/errors.ts";

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
    const removed = await removeExcess(incoming, upload, receiving);
    for (const excess of removed) kept.delete(excess);
    throw failure;
  }
}

/** A project's uploads that were interrupted and that nobody sends at present. */
async function listInterruptedUploads(
  incoming: string,
  project: string,
  receiving: Pick<ReadonlySet<string>, "has">,
) {
  const names = (await readdir(incoming)).filter(
    (name) => isProjectUpload(project, name) && !receiving.has(name),
  );
  const found = await Promise.all(
    names.map(async (name) => ({ name, stats: await statOrUndefined(path.join(incoming, name)) })),
  );
  return found.flatMap(({ name, stats }) =>
    stats ? [{ name, bytes: stats.size, modifiedAt: stats.mtime }] : [],
  );
}

/**
 * Removes interrupted uploads of a project where there is too much of them after one more was, but
 * none that is being received.
 * @returns their files
 */
async function removeExcess(
  incoming: string,
  upload: Upload,
  receiving: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const others = new Set(receiving.keys());
  others.delete(partialUploadName(upload));
  const excess = selectExcessUploads(
    await listInterruptedUploads(incoming, upload.project, others),
  );
  const files = excess.map(({ name }) => path.join(incoming, name));
  for (const file of files) await rm(file, { force: true });
  return files;
}
