import { baselineFigures, type RecordedBaseline } from "../contract/baseline.ts";
import type { Job } from "../contract/job.ts";
import type { WriteTransaction } from "./store.ts";

/** Where the baselines of a commit are recorded. */
interface BaselineCommit extends Pick<RecordedBaseline, "branch" | "sha"> {
  readonly project: string;
  readonly suite: string;
}

/** Makes completed jobs the baselines of a commit, unless later jobs are already. */
export async function saveBaselines(
  { trx }: WriteTransaction,
  { project, suite, branch, sha }: BaselineCommit,
  jobs: readonly Job[],
): Promise<void> {
  for (const { id, model, target, telemetry } of jobs) {
    const measured: RecordedBaseline = { ...baselineFigures(telemetry), jobId: id, sha, branch };
    const figures = { job_id: id, document: JSON.stringify(measured) };
    await trx
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
