import { rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../contract/errors.ts";
import type { BlobStore, Upload } from "./blob-store.ts";
import { statOrUndefined, storageError } from "./file-error.ts";
import { receiveFile } from "./receive-file.ts";

/** A broken connection may be seen a moment later on this end than on the other. */
const noticeMs = 2_000;
const suffix = ".partial";

interface PartialUploadOptions {
  /** Where uploads are kept until they are whole. */
  readonly incoming: string;
  /** Makes a whole file a blob. */
  readonly publish: (file: string, sha256: string) => Promise<void>;
  /** Takes in content on its own; leaves nothing behind when it fails. */
  readonly write: BlobStore["write"];
}

/**
 * Uploads that can go on after their sender was lost: one file for each hash and owner, at its final name from the first
 * byte, so that it survives its process. One process at a time may receive uploads into a folder.
 */
export function createPartialUploads({
  incoming,
  publish,
  write,
}: PartialUploadOptions): Pick<BlobStore, "findPartial" | "receive"> {
  /** Files that are being written. */
  const receiving = new Map<string, Promise<unknown>>();
  const partialUploadPath = ({ sha256, owner }: Upload) =>
    path.join(incoming, `${encodeURIComponent(owner)}.${sha256}${suffix}`);

  const receivePartial: BlobStore["receive"] = async (
    upload,
    source,
    { offset = 0, ...options } = {},
  ) => {
    const file = partialUploadPath(upload);
    if (offset > 0) checkUploadOffset(offset, (await statOrUndefined(file))?.size ?? 0);
    try {
      const blob = await receiveFile(file, source, {
        ...options,
        offset,
        expectedSha256: upload.sha256,
      });
      await publish(file, upload.sha256);
      return blob;
    } catch (error) {
      const known = storageError(error);
      // Nothing that is refused can be gone on with.
      if (known instanceof ServiceError) await rm(file, { force: true });
      throw known;
    }
  };

  return {
    async findPartial(upload) {
      const file = partialUploadPath(upload);
      const ended = receiving.get(file);
      if (ended) await Promise.race([ended, delay(noticeMs, undefined, { ref: false })]);
      if (receiving.has(file)) return undefined;
      const found = await statOrUndefined(file);
      return found && { bytes: found.size };
    },

    async receive(upload, source, options = {}) {
      const { offset = 0, ...writeOptions } = options;
      const file = partialUploadPath(upload);
      if (receiving.has(file)) {
        if (offset === 0) return write(source, { ...writeOptions, expectedSha256: upload.sha256 });
        const message = `The upload cannot go on at byte ${offset} while another request sends it: only from 0`;
        throw new ServiceError("upload_offset_mismatch", message, {
          headers: { "upload-offset": "0" },
        });
      }
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      receiving.set(file, ended);
      try {
        return await receivePartial(upload, source, options);
      } finally {
        receiving.delete(file);
        end();
      }
    },
  };
}

/** Whether a file of the folder is an upload that can go on. */
export function isPartialUpload(name: string): boolean {
  return name.endsWith(suffix);
}

function checkUploadOffset(offset: number, keptBytes: number): void {
  if (offset <= keptBytes) return;
  throw new ServiceError(
    "upload_offset_mismatch",
    `The upload cannot go on at byte ${offset}: ${keptBytes} bytes are kept, so ${keptBytes} or less is allowed`,
    { headers: { "upload-offset": String(keptBytes) } },
  );
}
