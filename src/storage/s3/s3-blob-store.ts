import { createHash, randomUUID } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { createChunkedUploads } from "./chunked-uploads.ts";
import { incomingFolder, removeAbandonedUploads } from "./incoming-uploads.ts";
import {
  blobKey,
  checksumHeaders,
  copyObject,
  findObject,
  listObjects,
  putObject,
  removeObjects,
} from "./objects.ts";
import { readObject, streamObject } from "./read-object.ts";
import {
  createS3Client,
  presignRequest,
  type S3Access,
  type S3Client,
  S3Error,
  type S3Limits,
} from "./s3-client.ts";
import type { BlobStore, DirectTransfers } from "../blob-store.ts";
import { storageError } from "../file-error.ts";
import { createPartialUploads } from "../partial-uploads.ts";
import { receiveFile, writeStream } from "../receive-file.ts";
import { readPieces } from "../../model-files/read-pieces.ts";

interface S3BlobStore extends BlobStore, AsyncDisposable {}

/**
 * A store in a bucket: `blobs/ab/abcd…` for complete content, `incoming/` for what is being sent
 * and for interrupted uploads. Several processes may use the bucket at once.
 * @throws Error where the bucket cannot be written, read and listed
 */
export async function openS3BlobStore(access: S3Access, limits?: S3Limits): Promise<S3BlobStore> {
  await using stack = new AsyncDisposableStack();
  const client = stack.use(createS3Client(access, limits));
  const abilities = await checkBucket(client);
  const { write, ...partials } = createChunkedUploads(client);
  const opened = stack.move();
  return {
    async find(sha256) {
      const found = await findObject(client, blobKey(sha256));
      return found && { bytes: found.bytes };
    },
    read: (sha256, range) => streamObject(client, blobKey(sha256), range),
    write,
    ...createPartialUploads({ ...partials, write }),
    async delete(sha256, storedBefore) {
      const found = await findObject(client, blobKey(sha256));
      if (found === undefined || found.modifiedAt >= storedBefore) return;
      await removeObjects(client, [blobKey(sha256)]);
    },
    direct: createDirectTransfers(client, access, abilities),
    purge: () => removeAbandonedUploads(client, new Date()),
    writeFile: (file, options) => write(readPieces(file, options?.signal), options),
    async materialize(sha256, target, signal) {
      try {
        const content = readObject(client, blobKey(sha256), { signal });
        await receiveFile(target, content, { expectedSha256: sha256, signal });
      } catch (error) {
        await rm(target, { force: true });
        throw storageError(error);
      }
    },
    async materializeRanges(sha256, target, { ranges, signal }) {
      await using file = await open(target, "r+");
      for (const range of ranges) {
        const content = readObject(client, blobKey(sha256), { ...range, signal });
        await writeStream(file, content, range.start);
      }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const probe = Buffer.from("Written to see whether the bucket can be used.");

interface BucketAbilities {
  /** Whether the server verifies the SHA-256 of what it is sent, and remembers it. */
  readonly verifiesSha256: boolean;
}

/** Whether content with another hash than the header's is refused, and not only remembered. */
async function refusesOtherContent(client: S3Client, key: string): Promise<boolean> {
  const headers = checksumHeaders(createHash("sha256").update("other content").digest("hex"));
  try {
    await client.send({ method: "PUT", key, headers, body: probe });
    await removeObjects(client, [key]);
    return false;
  } catch (error) {
    if (error instanceof S3Error && error.status === 400) return true;
    throw error;
  }
}

/**
 * Writes, finds, lists and deletes an object.
 * @throws Error that names what the server refuses
 */
async function checkBucket(client: S3Client): Promise<BucketAbilities> {
  const folder = incomingFolder(`.${randomUUID()}`);
  const key = `${folder}probe`;
  try {
    await putObject(client, key, { content: probe });
    const found = await findObject(client, key);
    const listed = await Array.fromAsync(listObjects(client, folder));
    await removeObjects(client, [key]);
    if (found === undefined || listed.length !== 1) throw new Error("It forgets what is written");
    const sha256 = createHash("sha256").update(probe).digest("hex");
    const isRemembered = found.sha256 === sha256;
    return { verifiesSha256: isRemembered && (await refusesOtherContent(client, key)) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Bucket "${client.bucket}" cannot be used: ${reason}`, { cause });
  }
}

/** Largest object of one request. */
const maxDirectBytes = 5 * 1024 ** 3;
/** A request that has begun goes on: an address is asked for again where a connection breaks. */
const addressSeconds = 900;

/**
 * Presigned requests. The server verifies the hash of what it is sent, below a key of the sender:
 * knowing a blob's hash is no proof of having it.
 */
function createDirectTransfers(
  client: S3Client,
  access: S3Access,
  { verifiesSha256 }: { readonly verifiesSha256: boolean },
): DirectTransfers {
  return {
    findAddress: (sha256) =>
      presignRequest(access, { method: "GET", key: blobKey(sha256), seconds: addressSeconds }),
    async prepare(sender, { sha256, bytes }) {
      if (!verifiesSha256 || bytes > maxDirectBytes) return undefined;
      const headers = checksumHeaders(sha256);
      const key = directKey(sender, sha256);
      const put = { method: "PUT", key, headers, seconds: addressSeconds } as const;
      const url = await presignRequest(access, put);
      return { url, headers };
    },
    async findSent(sender, sha256) {
      const key = directKey(sender, sha256);
      const found = await findObject(client, key);
      if (found?.sha256 !== sha256) return undefined;
      const { bytes } = found;
      return {
        bytes,
        accept: async () => copyObject(client, { from: key, to: blobKey(sha256) }),
        discard: async () => removeObjects(client, [key]),
      };
    },
  };
}

function directKey(sender: string, sha256: string): string {
  return `${incomingFolder(`.${sender}.${sha256}`)}content`;
}
