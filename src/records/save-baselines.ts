import { baselineFigures, type RecordedBaseline } from "../contract/baseline.ts";
import type { Job } from "../contract/job.ts";
import { claimSuite, reachesSuite } from "./suite-owner.ts";
import type { WriteTransaction } from "./store.ts";

/** Where the baselines of a commit are recorded. */
interface BaselineCommit extends Pick<RecordedBaseline, "branch" | "sha"> {
  readonly project: string;
  readonly suite: string;
  /** Of the workflow that the jobs come from. */
  readonly repository: string | null;
}

/**
 * Makes completed jobs the baselines of a commit, unless later jobs are already, or the suite
 * belongs to another repository.
 */
export async function saveBaselines(
  writing: WriteTransaction,
  { project, suite, branch, sha, repository }: BaselineCommit,
  jobs: readonly Job[],
): Promise<void> {
  const suiteRepository = await claimSuite(writing, { project, suite }, repository);
  if (!reachesSuite(repository, suiteRepository)) return;
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
}
