import { ServiceError } from "../../contract/errors.ts";
import { addStoredBytes } from "../database/counters.ts";
import { runWriteTransaction, type Store } from "../database/store.ts";

/** Blobs that workers of jobs have stored: what they may report and read again. */
export function jobBlobRecords(store: Store) {
  const { db } = store;
  return {
    /** @throws ServiceError not_found where the job was deleted meanwhile */
    add: (
      jobId: string,
      { sha256, bytes }: { readonly sha256: string; readonly bytes: number },
    ): Promise<void> =>
      runWriteTransaction(store, async ({ trx }) => {
        const jobs = trx.selectFrom("jobs").select("project").where("id", "=", jobId);
        const job = await jobs.executeTakeFirst();
        if (job === undefined) throw new ServiceError("not_found", `There is no job "${jobId}"`);
        const { numInsertedOrUpdatedRows } = await trx
          .insertInto("job_blobs")
          .values({ job_id: jobId, sha256, bytes })
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst();
        if (numInsertedOrUpdatedRows === 0n) return;
        await addStoredBytes(trx, job.project, bytes);
      }),

    has: (jobId: string, sha256: string) => hasJobBlob(db, jobId, sha256),

    /**
     * Whether the job can have stored the blob: not where others have it and the job does not, or
     * where it has another size. Nobody has what a worker stored after the backup was made that the
     * records are restored from.
     */
    async mayHave(
      jobId: string,
      { sha256, bytes }: { readonly sha256: string; readonly bytes: number },
    ): Promise<boolean> {
      const owners = await db
        .selectFrom("job_blobs")
        .where("sha256", "=", sha256)
        .select(["job_id as owner", "bytes"])
        .unionAll(
          db
            .selectFrom("project_blobs")
            .where("sha256", "=", sha256)
            .select(["project as owner", "bytes"]),
        )
        .execute();
      if (owners.length === 0) return true;
      return owners.some((known) => known.owner === jobId && known.bytes === bytes);
    },
  };
}

export async function hasJobBlob(db: Store["db"], jobId: string, sha256: string): Promise<boolean> {
  const row = await db
    .selectFrom("job_blobs")
    .select("sha256")
    .where("job_id", "=", jobId)
    .where("sha256", "=", sha256)
    .executeTakeFirst();
  return row !== undefined;
}
