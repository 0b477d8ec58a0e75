import { rm } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import type { Blob, Upload } from "./blob-store.ts";
import type { DiskSpace } from "./disk-space.ts";
import { statOrUndefined, storageError } from "./file-error.ts";
import { createKeptUpload, type KeptUpload, takeKept } from "./kept-uploads.ts";
import { listInterruptedUploads } from "./list-interrupted-uploads.ts";
import { partialUploadPath } from "./partial-upload-path.ts";
import type { UploadContent } from "./partial-uploads.ts";
import { receiveFile } from "./receive-file.ts";
import { removeExcess } from "./remove-excess.ts";

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
