import { ServiceError } from "../../contract/errors.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";
import { deleteEndedJobs, rememberResources, requireUnused } from "./delete-jobs.ts";
import { findBatch } from "./find-batch.ts";
import { findRecord } from "./find-record.ts";
import { forgetBaselines } from "./baseline-records.ts";
import { runWriteTransaction, type Store } from "../database/store.ts";

/** A deletion is in the audit before anything is deleted: that takes several transactions. */
interface Deletion {
  readonly project: string;
  readonly id: string;
  readonly audit?: AuditedChange;
  /** Whether the newest baseline of a branch may go with its job. */
  readonly withBaselines?: boolean;
}

/** Deletes jobs and batches for good. */
export function deletionRecords(store: Store) {
  return {
    /**
     * False where the project has no such job.
     * @throws ServiceError job_unfinished, job_in_use
     */
    async deleteJob({ project, id, audit, withBaselines }: Deletion): Promise<boolean> {
      const isThere = await runWriteTransaction(store, async (writing) => {
        const record = await findRecord(writing, id);
        if (record?.project !== project) return false;
        const { status, batchId } = record.job;
        if (!isTerminal(status)) {
          const message = `Job "${id}" cannot be deleted: it is ${status}`;
          throw new ServiceError("job_unfinished", message);
        }
        if (batchId !== null) {
          const message = `Job "${id}" counts for batch "${batchId}", with which it can be deleted`;
          throw new ServiceError("job_in_use", message);
        }
        await requireUnused(writing.trx, [id], { withBaselines });
        await addAuditEntry(writing, audit, id);
        return true;
      });
      if (isThere) await deleteEndedJobs(store, [id]);
      return isThere;
    },

    /**
     * False where the project has no such batch. `requireJobs` throws where the jobs must not go
     * yet.
     * @throws ServiceError batch_unfinished, job_in_use
     */
    async deleteBatch({
      requireJobs,
      ...deletion
    }: Deletion & { readonly requireJobs: (jobIds: readonly string[]) => void }): Promise<boolean> {
      const { project, id, audit, withBaselines } = deletion;
      const jobIds = await runWriteTransaction(store, async (writing) => {
        const batch = await findBatch(writing.trx, project, id);
        if (batch === undefined) return undefined;
        const ids = batch.jobs.map((job) => job.id);
        requireJobs(ids);
        const live = batch.jobs.find(({ status }) => !isTerminal(status));
        if (live) {
          const message = `Batch "${id}" cannot be deleted: its job "${live.id}" is ${live.status}`;
          throw new ServiceError("batch_unfinished", message);
        }
        await requireUnused(writing.trx, ids, { withBaselines, batchId: id });
        await forgetBaselines(writing, ids);
        await addAuditEntry(writing, audit, id);
        return ids;
      });
      if (jobIds === undefined) return false;
      await deleteBatchWithJobs(store, id, jobIds);
      return true;
    },

    /** Whether a job or batch was deleted whose custom resource may still be there. */
    async wasDeleted(id: string): Promise<boolean> {
      const deleted = store.db.selectFrom("deleted_resources").select("id").where("id", "=", id);
      return (await deleted.executeTakeFirst()) !== undefined;
    },
  };
}

export async function deleteBatchWithJobs(
  store: Store,
  id: string,
  jobIds: readonly string[],
): Promise<void> {
  await deleteEndedJobs(store, jobIds);
  await runWriteTransaction(store, async (writing) => {
    const { trx, effects } = writing;
    await trx.deleteFrom("github_job_checks").where("report_id", "=", id).execute();
    await trx.deleteFrom("github_reports").where("id", "=", id).execute();
    await rememberResources(writing, "batches", [id]);
    await trx.deleteFrom("batches").where("id", "=", id).execute();
    effects.changed.add(id);
  });
}
