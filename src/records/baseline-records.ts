import { saveBaselines } from "./save-baselines.ts";
import { findBatch } from "./batch-records.ts";
import { parseJob } from "./save-job-records.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

export function baselineRecords(store: Store) {
  return {
    /**
     * Makes the completed jobs of a batch, whatever their gates say, what its base is compared with from now on. Gives their
     * number.
     */
    accept(project: string, batchId: string): Promise<number> {
      return runWriteTransaction(store, (writing) => acceptBatch(writing, project, batchId));
    },
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
