import { findBatch, findBatchSource } from "./find-batch.ts";
import { parseJob } from "./find-record.ts";
import { saveBaselines } from "./save-records.ts";
import { claimSuite, findSuiteRepository } from "./suite-records.ts";
import type { Ownership } from "../../contract/people/principal.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";

/** What later jobs are compared with. */
export function baselineRecords(store: Store) {
  return {
    /** Whose the baselines of a suite are; undefined if there are none. */
    async findOwner(project: string, suite: string): Promise<Ownership | undefined> {
      const repository = await findSuiteRepository(store.db, project, suite);
      if (repository === undefined) return undefined;
      return { project, origin: repository === null ? null : { repository } };
    },

    /**
     * Makes the completed jobs of a batch, whatever their gates say, baselines of its base. Returns
     * their number: none for the suite of another repository.
     */
    accept: (project: string, batchId: string, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { trx } = writing;
        const batch = await findBatch(trx, project, batchId);
        const { suite = null, revision = null } = batch ?? {};
        const branch = revision?.base?.branch ?? revision?.branch;
        if (suite === null || revision === null || branch === undefined) return 0;
        const source = await findBatchSource(trx, batchId);
        const owner = await claimSuite(writing, project, suite, source.repository);
        if (owner !== source.repository) return 0;
        const rows = await trx
          .selectFrom("jobs")
          .select("document")
          .where("batch_id", "=", batchId)
          .where("status", "=", "Completed")
          .execute();
        const jobs = rows.map(({ document }) => parseJob(document)).filter((job) => !job.dryRun);
        const sha = revision.base?.sha ?? revision.sha;
        await saveBaselines(writing, { project, suite, branch, sha, source }, jobs);
        if (jobs.length > 0) await addAuditEntry(writing, audit, batchId);
        return jobs.length;
      }),
  };
}

/** From then on no new job is compared with the jobs, which are deleted in several steps. */
export async function forgetBaselines(
  { trx }: WriteTransaction,
  jobIds: readonly string[],
): Promise<void> {
  if (jobIds.length === 0) return;
  await trx.deleteFrom("baselines").where("job_id", "in", jobIds).execute();
}
