import { findBatch, findBatchSource } from "./find-batch.ts";
import { parseJob } from "./find-record.ts";
import { saveBaselines } from "./save-records.ts";
import { claimSuite, findSuiteRepository, type SuiteOwner } from "./suite-records.ts";
import type { Ownership } from "../../contract/people/principal.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";
import { addAuditEntry, type AuditedChange } from "../people/add-audit-entry.ts";

/** What later jobs are compared with. */
export function baselineRecords(store: Store) {
  return {
    /** Whose the baselines of a suite are; undefined where there are none. */
    findOwner: (project: string, suite: string) => findSuiteOwner(store, { project, suite }),

    /**
     * Makes the completed jobs of a batch, whatever their gates say, baselines of its base. Returns
     * their number: none for the suite of another repository.
     */
    accept: (project: string, batchId: string, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const accepted = await acceptBatch(writing, project, batchId);
        if (accepted > 0) await addAuditEntry(writing, audit, { subject: batchId });
        return accepted;
      }),
  };
}

async function findSuiteOwner({ db }: Store, suite: SuiteOwner): Promise<Ownership | undefined> {
  const repository = await findSuiteRepository(db, suite);
  if (repository === undefined) return undefined;
  return { project: suite.project, origin: repository === null ? null : { repository } };
}

async function acceptBatch(
  writing: WriteTransaction,
  project: string,
  batchId: string,
): Promise<number> {
  const batch = await findBatch(writing.trx, project, batchId);
  const { suite = null, revision = null } = batch ?? {};
  const branch = revision?.base?.branch ?? revision?.branch;
  if (suite === null || revision === null || branch === undefined) return 0;
  const source = await findBatchSource(writing.trx, batchId);
  const { repository } = source;
  if ((await claimSuite(writing, { project, suite }, repository)) !== repository) return 0;
  const rows = await writing.trx
    .selectFrom("jobs")
    .select("document")
    .where("batch_id", "=", batchId)
    .where("status", "=", "Completed")
    .execute();
  const jobs = rows.map(({ document }) => parseJob(document)).filter(({ dryRun }) => !dryRun);
  await saveBaselines(
    writing,
    { project, suite, branch, sha: revision.base?.sha ?? revision.sha, source },
    jobs,
  );
  return jobs.length;
}

/** From then on no new job is compared with the jobs, which are deleted in several steps. */
export async function forgetBaselines(
  { trx }: WriteTransaction,
  jobIds: readonly string[],
): Promise<void> {
  if (jobIds.length === 0) return;
  await trx.deleteFrom("baselines").where("job_id", "in", jobIds).execute();
}
