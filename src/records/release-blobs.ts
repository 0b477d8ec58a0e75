import { jobBlobTables } from "./list-referenced-blobs.ts";
import type { WriteTransaction } from "./store.ts";

/** Releases the blobs of jobs, which are deleted later unless another record names them. */
export async function releaseJobBlobs(
  writing: WriteTransaction,
  jobIds: readonly string[],
): Promise<void> {
  for (const table of jobBlobTables) {
    const rows = await writing.trx
      .selectFrom(table)
      .select("sha256")
      .distinct()
      .where("job_id", "in", jobIds)
      .execute();
    await releaseBlobs(
      writing,
      rows.map(({ sha256 }) => sha256),
    );
  }
}

export async function releaseBlobs(
  { trx, now }: WriteTransaction,
  hashes: readonly string[],
): Promise<void> {
  const released_at = now.toISOString();
  for (const sha256 of hashes) {
    await trx
      .insertInto("released_blobs")
      .values({ sha256, released_at })
      .onConflict((conflict) => conflict.column("sha256").doUpdateSet({ released_at }))
      .execute();
  }
}
