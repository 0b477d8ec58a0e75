import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import type { BlobStore } from "../blob-store.ts";
import { storageError } from "../file-error.ts";
import { createPartialUploads } from "../partial-uploads.ts";
import { receiveFile } from "../receive-file.ts";
import { writeStream } from "../write-stream.ts";
import { blobKey } from "./blob-key.ts";
import { checkBucket } from "./check-bucket.ts";
import { createChunkedUploads } from "./chunked-uploads.ts";
import { createDirectTransfers } from "./direct-transfers.ts";
import { removeAbandonedUploads } from "./incoming-uploads.ts";
import { findObject, removeObjects } from "./objects.ts";
import { readObject, streamObject } from "./read-object.ts";
import type { S3Access } from "./s3-address.ts";
import { createS3Client, type S3Limits } from "./s3-client.ts";

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
    writeFile: (file, options) =>
      write(createReadStream(file, { highWaterMark: 1 << 20 }), options),
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
