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
} from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import type { BlobStore } from "./blob-store.ts";
import { systemErrorCode, statOrUndefined, storageError } from "./file-error.ts";
import { createPartialUploads, isPartialUpload } from "./partial-uploads.ts";
import { receiveFile } from "./receive-file.ts";

/** A temporary file that nobody has written to for so long has lost its writer, wherever that ran. */
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/**
 * A store in a folder: `blobs/ab/abcd…` for complete content, `incoming/` for what is being written and
 * for uploads that broke off. Several processes may use the folder at once.
 */
export async function createDirectoryBlobStore(directory: string): Promise<BlobStore> {
  const incoming = path.join(directory, "incoming");
  await mkdir(incoming, { recursive: true });
  await removeAbandoned(incoming);
  const blobPath = (sha256: string) => path.join(directory, "blobs", sha256.slice(0, 2), sha256);
  const publish = async (file: string, sha256: string) => publishBlob(file, blobPath(sha256));
  const write: BlobStore["write"] = async (source, options = {}) => {
    const temporary = path.join(incoming, `${hostname()}.${process.pid}.${randomUUID()}`);
    try {
      const blob = await receiveFile(temporary, source, options);
      await publish(temporary, blob.sha256);
      return blob;
    } catch (error) {
      await rm(temporary, { force: true });
      throw storageError(error);
    }
  };
  return {
    async find(sha256) {
      const found = await statOrUndefined(blobPath(sha256));
      return found && { bytes: found.size };
    },
    read(sha256, range) {
      return createReadStream(blobPath(sha256), range);
    },
    write,
    ...createPartialUploads({ incoming, publish, write }),
    purge: () => removeAbandoned(incoming),
    writeFile(file, options) {
      return write(createReadStream(file, { highWaterMark: 1 << 20 }), options);
    },
    async materialize(sha256, target, signal) {
      await linkOrCopy(blobPath(sha256), target);
      signal?.throwIfAborted();
    },
  };
}

/** The folder is flushed too: a blob that was reported stored is there after a power cut. */
async function publishBlob(file: string, target: string): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await rename(file, target);
  await chmod(target, 0o444);
  await using handle = await open(folder, "r");
  await handle.sync();
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP"].includes(systemErrorCode(error))) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }
}

async function removeAbandoned(incoming: string): Promise<void> {
  for (const name of await readdir(incoming)) {
    const file = path.join(incoming, name);
    const found = await statOrUndefined(file);
    const isOld = found !== undefined && found.mtimeMs < Date.now() - abandonedAfterMs;
    if (isOld || !(isPartialUpload(name) || mayHaveWriter(name))) await rm(file, { force: true });
  }
}

/** Whether the writer that a temporary file is named after may still run; of other machines nothing is known. */
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
