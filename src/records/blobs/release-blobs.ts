import { jobBlobTables } from "./list-referenced-blobs.ts";
import type { WriteTransaction } from "../database/store.ts";

const rowsPerQuery = 200;

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

/** Releases blobs, each named once. */
export async function releaseBlobs(
  { trx, now }: WriteTransaction,
  hashes: readonly string[],
): Promise<void> {
  const released_at = now.toISOString();
  for (let start = 0; start < hashes.length; start += rowsPerQuery) {
    const rows = hashes.slice(start, start + rowsPerQuery);
    await trx
      .insertInto("released_blobs")
      .values(rows.map((sha256) => ({ sha256, released_at })))
      .onConflict((conflict) => conflict.column("sha256").doUpdateSet({ released_at }))
      .execute();
  }
}
