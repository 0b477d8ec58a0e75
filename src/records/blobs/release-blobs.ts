import { addStoredBytes } from "../database/counters.ts";
import { jobBlobTables } from "./list-referenced-blobs.ts";
import type { Job } from "../../contract/jobs/job.ts";
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

/** Deletes what the pods of a job made for one another only, as deleteJobBlobs does, when it has ended. */
export async function deleteSharedBlobs(
  writing: WriteTransaction,
  project: string,
  { id, artifacts }: Pick<Job, "id" | "artifacts">,
): Promise<void> {
  const { trx } = writing;
  const kept = new Set(artifacts.map(({ sha256 }) => sha256));
  for (const table of ["job_shares", "job_outlines"] as const) {
    const rows = await trx.deleteFrom(table).where("job_id", "=", id).returning("sha256").execute();
    const hashes = rows.map(({ sha256 }) => sha256).filter((sha256) => !kept.has(sha256));
    if (hashes.length === 0) continue;
    const blobs = await trx
      .deleteFrom("job_blobs")
      .where("job_id", "=", id)
      .where("sha256", "in", hashes)
      .returning("bytes")
      .execute();
    const bytes = blobs.reduce((sum, blob) => sum + Number(blob.bytes), 0);
    await addStoredBytes(trx, project, -bytes);
    await releaseBlobs(writing, [...new Set(hashes)]);
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
