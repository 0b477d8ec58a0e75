import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { constants, copyFile, link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { ServiceError } from "../contract/errors.ts";
import type { Blob, BlobStore, WriteOptions } from "./blob-store.ts";
import { errorCodeOf, storageError } from "./file-error.ts";

/** A temporary file that nobody has written to for so long has lost its writer, wherever that ran. */
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/**
 * A store in a folder: `blobs/ab/abcd…` for complete content, `incoming/` for what is being written. Several processes
 * may use the folder at once.
 */
export async function createDirectoryBlobStore(directory: string): Promise<BlobStore> {
  const incoming = path.join(directory, "incoming");
  await mkdir(incoming, { recursive: true });
  await removeAbandoned(incoming);
  const pathOf = (sha256: string) => path.join(directory, "blobs", sha256.slice(0, 2), sha256);
  const write: BlobStore["write"] = async (source, options = {}) => {
    const temporary = path.join(incoming, `${hostname()}.${process.pid}.${randomUUID()}`);
    try {
      const blob = await writeTemporary(temporary, source, options);
      await publish(temporary, pathOf(blob.sha256));
      return blob;
    } catch (error) {
      await rm(temporary, { force: true });
      throw storageError(error);
    }
  };
  return {
    async find(sha256) {
      const found = await statOrUndefined(pathOf(sha256));
      return found && { bytes: found.size };
    },
    read(sha256, range) {
      return createReadStream(pathOf(sha256), range);
    },
    write,
    writeFile(file, options) {
      return write(createReadStream(file, { highWaterMark: 1 << 20 }), options);
    },
    async materialize(sha256, target, signal) {
      await linkOrCopy(pathOf(sha256), target);
      signal?.throwIfAborted();
    },
  };
}

async function writeTemporary(
  temporary: string,
  source: AsyncIterable<Uint8Array>,
  { expectedSha256, maxBytes = Infinity, signal }: WriteOptions,
): Promise<Blob> {
  const hash = createHash("sha256");
  let bytes = 0;
  const measured = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) {
        throw new ServiceError("payload_too_large", `Content is larger than the allowed ${maxBytes} bytes`);
      }
      hash.update(chunk);
      yield chunk;
    }
  };
  const file = await open(temporary, "wx", 0o444);
  await pipeline(source, measured, file.createWriteStream({ flush: true }), { ...(signal && { signal }) });
  const sha256 = hash.digest("hex");
  if (expectedSha256 !== undefined && sha256 !== expectedSha256) {
    throw new ServiceError("model_checksum_mismatch", `Content has SHA-256 ${sha256}, expected ${expectedSha256}`);
  }
  return { sha256, bytes };
}

/** The folder is flushed too: a blob that was reported stored is there after a power cut. */
async function publish(temporary: string, target: string): Promise<void> {
  const folder = path.dirname(target);
  await mkdir(folder, { recursive: true });
  await rename(temporary, target);
  await using handle = await open(folder, "r");
  await handle.sync();
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP"].includes(errorCodeOf(error))) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }
}

async function removeAbandoned(incoming: string): Promise<void> {
  for (const name of await readdir(incoming)) {
    const file = path.join(incoming, name);
    const found = await statOrUndefined(file);
    const isOld = found !== undefined && found.mtimeMs < Date.now() - abandonedAfterMs;
    if (isOld || !mayBeWritten(name)) await rm(file, { force: true });
  }
}

/** Whether the writer that a temporary file is named after may still run; of other machines nothing is known. */
function mayBeWritten(name: string): boolean {
  const [, host, pid] = /^(.*)\.(\d+)\.[^.]*$/.exec(name) ?? [];
  return host !== hostname() || isProcessAlive(Number(pid));
}

function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCodeOf(error) === "EPERM";
  }
}

async function statOrUndefined(file: string) {
  try {
    return await stat(file);
  } catch (error) {
    if (errorCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
