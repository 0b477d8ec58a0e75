import { randomUUID } from "node:crypto";
import type { TestContext } from "node:test";
import type { BlobStore } from "../../src/storage/blob-store.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { createS3Client, type S3Access } from "../../src/storage/s3/s3-client.ts";
import { openS3BlobStore } from "../../src/storage/s3/s3-blob-store.ts";

/** Names an S3 server that the tests use in place of folders: its `S3Access` as JSON. */
export const bucketServerVariable = "MOS_TEST_S3_SERVER";

/**
 * An empty store: in the folder, or in a bucket of the server that the environment names, unless
 * the test needs the folder.
 */
export async function openTestBlobs(
  t: Pick<TestContext, "after">,
  folder: string,
  keepsFolder = false,
): Promise<BlobStore> {
  const server = process.env[bucketServerVariable];
  if (server === undefined || keepsFolder) return createDirectoryBlobStore(folder);
  const access: S3Access = { ...JSON.parse(server), bucket: `test-${randomUUID()}` };
  await using client = createS3Client(access);
  await client.send({ method: "PUT", key: "" });
  const blobs = await openS3BlobStore(access);
  t.after(() => blobs[Symbol.asyncDispose]());
  return blobs;
}
