import { saveBaselines } from "./save-baselines.ts";
import { findBatch } from "./find-batch.ts";
import { parseJob } from "./parse-job.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** What later jobs are compared with. */
export function baselineRecords(store: Store) {
  return {
    /**
     * Makes the completed jobs of a batch, whatever their gates say, baselines of its base. Returns
     * their number.
     */
    accept: (project: string, batchId: string) =>
      runWriteTransaction(store, (writing) => acceptBatch(writing, project, batchId)),
  };
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
  const rows = await writing.trx
    .selectFrom("jobs")
    .select("document")
    .where("batch_id", "=", batchId)
    .where("status", "=", "Completed")
    .execute();
  const jobs = rows.map(({ document }) => parseJob(document)).filter(({ dryRun }) => !dryRun);
  await saveBaselines(
    writing,
    { project, suite, branch, sha: revision.base?.sha ?? revision.sha },
    jobs,
  );
  return jobs.length;
}
