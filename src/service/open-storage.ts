import { mkdir } from "node:fs/promises";
import { openRecords, type Records } from "../records/open-records.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import { databasePath } from "./database-path.ts";
import { lockDataDirectory } from "./lock-data-directory.ts";

interface ServiceStorage extends AsyncDisposable {
  readonly records: Records;
  readonly blobs: BlobStore;
}

const purgeIntervalMs = 3_600_000;

/** Opens the records and files in the data directory, which no other service may use meanwhile. */
export async function openStorage(
  directory: string,
  options: { readonly now: () => Date; readonly maxWaitingJobs: number },
): Promise<ServiceStorage> {
  await using stack = new AsyncDisposableStack();
  await mkdir(directory, { recursive: true });
  stack.use(lockDataDirectory(directory));
  const records = await openRecords(databasePath(directory), options);
  stack.defer(() => records.close());
  await records.idempotency.reset();
  const blobs = await createDirectoryBlobStore(directory);
  const { idempotency, tokens, identities } = records;
  stack.use(purgeRegularly([idempotency, tokens, identities, blobs]));
  const opened = stack.move();
  return { records, blobs, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

interface Purgeable {
  purge(): Promise<unknown>;
}

/** Deletes what has expired, every hour. */
function purgeRegularly(parts: readonly Purgeable[]): Disposable {
  const purge = () => void Promise.all(parts.map((part) => part.purge()));
  const timer = setInterval(purge, purgeIntervalMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
