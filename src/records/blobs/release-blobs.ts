import { addStoredBytes } from "../database/counters.ts";
import { jobBlobTables } from "./list-referenced-blobs.ts";
import type { WriteTransaction } from "../database/store.ts";

const rowsPerQuery = 200;

/** Deletes the blobs of jobs; their files are deleted later unless another record names them. */
export async function deleteJobBlobs(
  writing: WriteTransaction,
  jobIds: readonly string[],
): Promise<void> {
  const { trx } = writing;
  const stored = await trx
    .selectFrom("job_blobs")
    .innerJoin("jobs", "jobs.id", "job_blobs.job_id")
    .select(({ fn }) => ["project", fn.sum<number>("bytes").as("bytes")])
    .where("job_id", "in", jobIds)
    .groupBy("project")
    .execute();
  for (const { project, bytes } of stored) await addStoredBytes(trx, project, -Number(bytes));
  for (const table of jobBlobTables) {
    const rows = await trx
      .deleteFrom(table)
      .where("job_id", "in", jobIds)
      .returning("sha256")
      .execute();
    await releaseBlobs(writing, [...new Set(rows.map(({ sha256 }) => sha256))]);
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
