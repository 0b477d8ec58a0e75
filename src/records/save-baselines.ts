import { baselineFigures, type RecordedBaseline } from "../contract/jobs/baseline.ts";
import type { Job } from "../contract/jobs/job.ts";
import { type BatchSource, claimSuite, recordsInSuite } from "./suite-owner.ts";
import type { WriteTransaction } from "./store.ts";

/** Where the baselines of a commit are recorded. */
interface BaselineCommit extends Pick<RecordedBaseline, "branch" | "sha"> {
  readonly project: string;
  readonly suite: string;
  /** Of the batch that the jobs belong to. */
  readonly source: BatchSource;
}

/**
 * Makes completed jobs the baselines of a commit, unless later jobs are already. False where the
 * suite belongs to a repository that the batch does not reach.
 */
export async function saveBaselines(
  writing: WriteTransaction,
  { project, suite, branch, sha, source }: BaselineCommit,
  jobs: readonly Job[],
): Promise<boolean> {
  const suiteRepository = await claimSuite(writing, { project, suite }, source.repository);
  if (!recordsInSuite(source, suiteRepository)) return false;
  for (const { id, model, target, telemetry } of jobs) {
    const measured: RecordedBaseline = { ...baselineFigures(telemetry), jobId: id, sha, branch };
    const figures = { job_id: id, document: JSON.stringify(measured) };
    await writing.trx
      .insertInto("baselines")
      .values({ project, suite, model: model.name, target, branch, sha, ...figures })
      .onConflict((conflict) =>
        conflict
          .columns(["project", "suite", "model", "target", "branch", "sha"])
          .doUpdateSet(figures)
          .where("baselines.job_id", "<", id),
      )
      .execute();
  }
  return true;
}
