import type { Log } from "../../log/json-log.ts";
import type { Records } from "../../records/open-records.ts";
import type { Retention } from "../../records/jobs/retention.ts";
import { StartError } from "../../settings/parse-environment.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import { createDirectoryBlobStore } from "../../storage/directory-blob-store.ts";
import { createDiskSpace, type DiskSpace } from "../../storage/disk-space.ts";
import type { S3Access } from "../../storage/s3/s3-client.ts";
import { openS3BlobStore } from "../../storage/s3/s3-blob-store.ts";
import { lockDataDirectory, makePrivate, type RecordsPlace } from "./data-directory.ts";
import { openServiceRecords } from "./open-service-records.ts";
import { purgeRegularly, purgeReleasedBlobs } from "./purge-regularly.ts";

interface ServiceStorage extends AsyncDisposable {
  readonly records: Records;
  readonly blobs: BlobStore;
  /** Fails with storage_full where the disk has no room for more work. */
  readonly requireSpace: () => Promise<void>;
  readonly readDiskSpace: DiskSpace["read"];
}

interface StorageOptions {
  readonly now: () => Date;
  readonly log: Log;
  readonly maxWaitingJobs: number;
  /** Of the disk, kept for records. */
  readonly reserveBytes: number;
  readonly retention: Retention;
  /** Where blobs are; by default in the data directory. */
  readonly s3?: S3Access | undefined;
}

/**
 * Opens the records and files in the data directory, which no other service may use meanwhile.
 * @throws StartError
 */
export async function openStorage(
  place: RecordsPlace,
  options: StorageOptions,
): Promise<ServiceStorage> {
  const { directory } = place;
  await using stack = new AsyncDisposableStack();
  await makePrivate(place);
  stack.use(lockDataDirectory(directory));
  const records = await openServiceRecords(place, options);
  stack.defer(() => records.close());
  if (options.s3 === undefined) await requireOnlyReplica(records);
  const space = createDiskSpace(directory, options.reserveBytes);
  const blobs = options.s3
    ? stack.use(await openBucket(options.s3))
    : await createDirectoryBlobStore(directory, space);
  const { isLeader } = records.replica;
  const expiring = listExpiring({ records, blobs }, options);
  stack.use(purgeRegularly(expiring, { isLeader, log: options.log }));
  const opened = stack.move();
  return {
    records,
    blobs,
    requireSpace: () => space.require(),
    readDiskSpace: () => space.read(),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** @throws StartError where others work on the same records, whose files are elsewhere */
async function requireOnlyReplica({ replica }: Records): Promise<void> {
  if ((await replica.listRunning()).size === 1) return;
  const message =
    "Another replica of the service runs: several need the common bucket of MOS_S3_FILE";
  throw new StartError(message);
}

/** Everything with parts that expire. */
function listExpiring(
  { records, blobs }: Pick<ServiceStorage, "records" | "blobs">,
  { retention, now }: StorageOptions,
) {
  const { changeLog, idempotency, tokens, sessions, identities, webhookDeliveries } = records;
  const expired = { purge: () => records.deleteExpired(retention) };
  const finishedLogs = { purge: () => records.logs.pack() };
  const releasedBlobs = { purge: () => purgeReleasedBlobs(records, blobs, now()) };
  const ofRecords = { changeLog, idempotency, tokens, sessions, identities, webhookDeliveries };
  return { ...ofRecords, expired, finishedLogs, releasedBlobs, blobs };
}

/** @throws StartError */
export async function openBucket(access: S3Access) {
  try {
    return await openS3BlobStore(access);
  } catch (cause) {
    throw new StartError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
