import type { Records } from "../records/open-records.ts";
import type { BlobStore } from "../storage/blob-store.ts";

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
      await releasedBlobs.forget(sha256);
    }
    if (unused.length === 0) break;
  }
  await releasedBlobs.forgetAll(before);
}
