import { ServiceError } from "../contract/errors.ts";
import { findUseOfJobs, type Reading } from "./delete-jobs.ts";

/**
 * Whether a live job, the newest baseline of a branch or an unfinished report needs the jobs, or
 * the batch that goes with them.
 */
export async function isJobNeeded(
  reading: Reading,
  jobIds: readonly string[],
  batchId?: string,
): Promise<boolean> {
  if ((await findUseOfJobs(reading, jobIds, batchId)) !== undefined) return true;
  return hasNewestBaseline(reading, jobIds);
}

interface Unused {
  /** Whether the newest baseline of a branch may go. */
  readonly withBaselines?: boolean | undefined;
  /** Of the batch that goes with the jobs. */
  readonly batchId?: string;
}

/** @throws ServiceError job_in_use */
export async function requireUnused(
  reading: Reading,
  jobIds: readonly string[],
  { withBaselines = false, batchId }: Unused,
): Promise<void> {
  const use = await findUseOfJobs(reading, jobIds, batchId);
  if (use !== undefined) throw new ServiceError("job_in_use", use);
  if (withBaselines || !(await hasNewestBaseline(reading, jobIds))) return;
  const message = "Later jobs are compared with it: deleting a baseline needs baselines:write";
  throw new ServiceError("job_in_use", message);
}

async function hasNewestBaseline({ trx }: Reading, jobIds: readonly string[]): Promise<boolean> {
  if (jobIds.length === 0) return false;
  const own = trx.selectFrom("baselines as own").select("own.job_id");
  const newest = await own
    .where("own.job_id", "in", jobIds)
    .where((eb) => {
      const later = eb
        .selectFrom("baselines as later")
        .select("later.job_id")
        .whereRef("later.project", "=", "own.project")
        .whereRef("later.suite", "=", "own.suite")
        .whereRef("later.model", "=", "own.model")
        .whereRef("later.target", "=", "own.target")
        .whereRef("later.branch", "=", "own.branch");
      return eb.not(eb.exists(later.whereRef("later.job_id", ">", "own.job_id")));
    })
    .limit(1)
    .executeTakeFirst();
  return newest !== undefined;
}
