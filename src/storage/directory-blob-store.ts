import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import {
  chmod,
  constants,
  copyFile,
  link,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  symlink,
} from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import type { Blob, BlobStore, WriteOptions } from "./blob-store.ts";
import { createDiskSpace, type DiskSpace } from "./disk-space.ts";
import { statOrUndefined, storageError, systemErrorCode } from "./file-error.ts";
import { createPartialFiles } from "./partial-files.ts";
import { isPartialUpload } from "./partial-upload-path.ts";
import { createPartialUploads } from "./partial-uploads.ts";
import { receiveFile, syncFolder, writeStream } from "./receive-file.ts";
import { readPieces } from "../model-files/read-pieces.ts";

/**
 * A store in a folder: `blobs/ab/abcd…` for complete content, `incoming/` for what is being written
 * and for interrupted uploads. Several processes may use the folder at once.
 */
export async function createDirectoryBlobStore(
  directory: string,
  space: DiskSpace = createDiskSpace(directory, 0),
): Promise<BlobStore> {
  const incoming = path.join(directory, "incoming");
  await mkdir(incoming, { recursive: true });
  await mkdir(path.join(directory, "blobs"), { recursive: true });
  await syncFolder(directory);
  await removeAbandoned(incoming);
  const locate = (sha256: string) => blobPath(directory, sha256);
  const publish = (file: string, sha256: string) => publishBlob(file, locate(sha256));
  const write = (source: AsyncIterable<Uint8Array>, options: WriteOptions = {}) =>
    writeBlob(space.guard(source), { incoming, publish, ...options });
  return {
    async find(sha256) {
      const stats = await statOrUndefined(locate(sha256));
      return stats && { bytes: stats.size };
    },
    read: (sha256, range) => createReadStream(locate(sha256), range),
    write,
    ...createPartialUploads({ ...createPartialFiles({ incoming, publish, space }), write }),
    async delete(sha256, storedBefore) {
      const stats = await statOrUndefined(locate(sha256));
      if (stats === undefined || stats.mtime >= storedBefore) return;
      await rm(locate(sha256), { force: true });
    },
    purge: () => removeAbandoned(incoming),
    writeFile: (file, options) => write(readPieces(file, options?.signal), options),
    async materialize(sha256, target, signal) {
      await linkOrCopy(locate(sha256), target);
      signal?.throwIfAborted();
    },
    async materializeRanges(sha256, target, { ranges, signal }) {
      await using file = await open(target, "r+");
      for (const range of ranges) {
        const source = createReadStream(locate(sha256), { ...range, signal });
        await writeStream(file, source, range.start);
      }
    },
  };
}

interface BlobWriteOptions extends WriteOptions {
  readonly incoming: string;
  readonly publish: (file: string, sha256: string) => Promise<void>;
}

async function writeBlob(
  source: AsyncIterable<Uint8Array>,
  { incoming, publish, ...options }: BlobWriteOptions,
): Promise<Blob> {
  const temporary = path.join(incoming, `${hostname()}.${process.pid}.${randomUUID()}`);
  try {
    const blob = await receiveFile(temporary, source, options);
    await publish(temporary, blob.sha256);
    return blob;
  } catch (error) {
    await rm(temporary, { force: true });
    throw storageError(error);
  }
}

/** Also flushes the folders: a blob that was reported stored survives a power failure. */
async function publishBlob(file: string, target: string): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await rename(file, target);
  await chmod(target, 0o444);
  await syncFolder(folder);
  await syncFolder(path.dirname(folder));
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const code = systemErrorCode(error);
    // Blobs are large, never change, and outlive what uses them.
    if (code === "EXDEV") return symlink(path.resolve(from), to);
    if (!["EPERM", "EMLINK", "ENOTSUP"].includes(code)) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }
}

/** Where a directory store keeps a blob. */
export function blobPath(directory: string, sha256: string): string {
  return path.join(directory, "blobs", sha256.slice(0, 2), sha256);
}

/** A temporary file without a write for so long has no writer, on whatever machine it ran. */
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/** Removes temporary files whose writer has ended, and uploads that were not continued. */
async function removeAbandoned(incoming: string): Promise<void> {
  for (const name of await readdir(incoming)) {
    const file = path.join(incoming, name);
    const stats = await statOrUndefined(file);
    const isOld = stats !== undefined && stats.mtimeMs < Date.now() - abandonedAfterMs;
    if (isOld || !(isPartialUpload(name) || mayHaveWriter(name))) await rm(file, { force: true });
  }
}

/**
 * Whether the process in a temporary file's name may still run; on other machines that cannot be
 * known.
 */
function mayHaveWriter(name: string): boolean {
  const [, host, pid] = /^(.*)\.(\d+)\.[^.]*$/.exec(name) ?? [];
  return host !== hostname() || isProcessAlive(Number(pid));
}

function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}
