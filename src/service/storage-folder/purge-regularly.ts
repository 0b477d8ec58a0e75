import type { Log } from "../../log/json-log.ts";
import type { Records } from "../../records/open-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";

interface Purgeable {
  purge(): Promise<unknown>;
}

/** Lets the start finish first. */
const firstMs = 60_000;
const intervalMs = 3_600_000;

interface PurgeOptions {
  /** Of several replicas one purges. */
  readonly isLeader: () => boolean;
  readonly log: Log;
}

/** Deletes what has expired, every hour. What cannot be deleted now is tried again in an hour. */
export function purgeRegularly(
  parts: Readonly<Record<string, Purgeable>>,
  { isLeader, log }: PurgeOptions,
): Disposable {
  const purge = async (name: string, part: Purgeable) => {
    try {
      await part.purge();
    } catch (error) {
      log("error", "What has expired could not be deleted", { part: name, error });
    }
  };
  const purgeAll = () => {
    if (!isLeader()) return;
    for (const [name, part] of Object.entries(parts)) void purge(name, part);
  };
  const first = setTimeout(purgeAll, firstMs);
  const timer = setInterval(purgeAll, intervalMs);
  return {
    [Symbol.dispose]() {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}

/** Time in which a backup, or a request that names the blob again, does not lose it. */
const graceMs = 3_600_000;

/** Deletes the blobs of deleted records that no other record names. */
export async function purgeReleasedBlobs(
  { releasedBlobs }: Pick<Records, "releasedBlobs">,
  blobs: BlobStore,
  now: Date,
): Promise<void> {
  const before = new Date(now.getTime() - graceMs);
  for (;;) {
    const unused = await releasedBlobs.listUnused(before);
    for (const sha256 of unused) {
      if (await releasedBlobs.isUnused(sha256, before)) await blobs.delete(sha256, before);
      await releasedBlobs.forget(sha256, before);
    }
    if (unused.length === 0) break;
  }
  await releasedBlobs.forgetAll(before);
}
