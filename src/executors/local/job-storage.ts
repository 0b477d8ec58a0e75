import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, realpath, rename } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import type { Blob, BlobStore } from "../../storage/blob-store.ts";
import { blobPath } from "../../storage/directory-blob-store.ts";
import { storageError, systemErrorCode } from "../../storage/file-error.ts";
import type { MeterBytes } from "../worker-authentication.ts";

/**
 * Makes the folder of a job's own blobs, with those that its worker reads: as links where the file
 * system has them, since models are large.
 * @returns the paths of what the worker reads
 */
export async function prepareJobStorage(
  directory: string,
  inputs: Iterable<string>,
  { blobs, signal }: { readonly blobs: BlobStore; readonly signal?: AbortSignal },
): Promise<string[]> {
  await mkdir(directory, { recursive: true });
  const paths: string[] = [];
  for (const sha256 of inputs) {
    if ((await blobs.find(sha256)) === undefined) continue;
    const target = blobPath(directory, sha256);
    await mkdir(path.dirname(target), { recursive: true });
    await blobs.materialize(sha256, target, signal);
    paths.push(target);
  }
  return paths;
}

type StoreBlob = (
  blob: { jobId: string; sha256: string },
  meter: MeterBytes,
) => Promise<Blob | undefined>;

/**
 * Copies blobs from the folders of jobs into the store, since their workers could still change
 * theirs. Requests for the same blob at the same time share one copy.
 */
export function createBlobTransfer(
  blobs: BlobStore,
  directoryOf: (jobId: string) => string,
): StoreBlob {
  const running = new Map<string, Promise<Blob | undefined>>();
  return ({ jobId, sha256 }, meter) => {
    const key = `${jobId} ${sha256}`;
    const known = running.get(key);
    if (known !== undefined) return known;
    const transfer = transferBlob(blobs, { from: directoryOf(jobId), sha256, meter });
    running.set(key, transfer);
    return transfer.finally(() => running.delete(key));
  };
}

interface BlobTransfer {
  readonly from: string;
  readonly sha256: string;
  readonly meter: MeterBytes;
}

/** Undefined where the worker has stored no such blob. */
async function transferBlob(
  blobs: BlobStore,
  { from, sha256, meter }: BlobTransfer,
): Promise<Blob | undefined> {
  await using file = await openFileWithin(from, blobPath(from, sha256));
  if (file === undefined) return undefined;
  const source = file.createReadStream({ highWaterMark: 1 << 20, autoClose: false });
  return await blobs.write(meter(source), { expectedSha256: sha256 });
}

/** Opens a file that a worker wrote; undefined for what a link or a pipe of its leads to. */
async function openFileWithin(directory: string, file: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const handle = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if ((await handle.stat()).isFile() && (await isWithin(directory, file, handle))) return handle;
    await handle.close();
    return undefined;
  } catch (error) {
    if (["ENOENT", "ELOOP", "ENOTDIR", "ENXIO"].includes(systemErrorCode(error))) return undefined;
    throw storageError(error);
  }
}

/** Linux reports the path of what was opened, so that no link can be put in between. */
async function isWithin(directory: string, file: string, { fd }: FileHandle): Promise<boolean> {
  const opened = process.platform === "linux" ? `/proc/self/fd/${fd}` : file;
  return (await realpath(opened)).startsWith(`${await realpath(directory)}${path.sep}`);
}

const run = promisify(execFile);
const marker = ".removed-";

/** The job whose scratch folder has the name, also where the folder is being removed. */
export function scratchOwner(name: string): string {
  return name.split(marker)[0] ?? name;
}

/**
 * Removes a scratch folder, which is renamed first: what a worker left so that it cannot be removed
 * is never used by another attempt. `rm` takes paths that are longer than those of the system.
 */
export async function removeScratch(folder: string): Promise<void> {
  const name = path.basename(folder);
  const isRenamed = name.includes(marker);
  const removed = isRenamed ? folder : `${folder}${marker}${randomUUID()}`;
  try {
    if (!isRenamed) await rename(folder, removed);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return;
    throw error;
  }
  await run("rm", ["-rf", "--", removed]);
}
