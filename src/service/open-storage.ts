import type { Log } from "../log/json-log.ts";
import { openRecords, type Records } from "../records/open-records.ts";
import { StartError } from "../settings/start-error.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import type { S3Access } from "../storage/s3/s3-address.ts";
import { openS3BlobStore } from "../storage/s3/s3-blob-store.ts";
import { databasePath } from "./database-path.ts";
import { lockDataDirectory } from "./lock-data-directory.ts";
import { makePrivate } from "./make-private.ts";
import { purgeRegularly } from "./purge-regularly.ts";

interface ServiceStorage extends AsyncDisposable {
  readonly records: Records;
  readonly blobs: BlobStore;
}

interface StorageOptions {
  readonly now: () => Date;
  readonly log: Log;
  readonly maxWaitingJobs: number;
  /** Where blobs are; by default in the data directory. */
  readonly s3?: S3Access | undefined;
}

/**
 * Opens the records and files in the data directory, which no other service may use meanwhile.
 * @throws StartError
 */
export async function openStorage(
  directory: string,
  options: StorageOptions,
): Promise<ServiceStorage> {
  await using stack = new AsyncDisposableStack();
  await makePrivate(directory);
  stack.use(lockDataDirectory(directory));
  const records = await openRecords(databasePath(directory), options);
  stack.defer(() => records.close());
  await records.idempotency.reset();
  const blobs = options.s3
    ? stack.use(await openBucket(options.s3))
    : await createDirectoryBlobStore(directory);
  const { idempotency, tokens, identities } = records;
  stack.use(purgeRegularly({ idempotency, tokens, identities, blobs }, options.log));
  const opened = stack.move();
  return { records, blobs, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function openBucket(access: S3Access) {
  try {
    return await openS3BlobStore(access);
  } catch (cause) {
    throw new StartError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
