import { type Expression, sql } from "kysely";
import { deleteLog } from "./log-records.ts";
import { ServiceError } from "../../contract/errors.ts";
import { liveStatuses } from "../../contract/jobs/status.ts";
import { deleteJobBlobs } from "../blobs/release-blobs.ts";
import { reportJobs } from "../database/dialect-sql.ts";
import { linkKeyName } from "./artifact-records.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** Rows that one transaction deletes: others wait for it. */
const jobsPerStep = 50;

/**
 * What jobs are needed for, though they have ended; undefined where they can go. `batchId`: of the
 * batch that goes with them.
 */
async function findUseOfJobs(
  db: Store["db"],
  jobIds: readonly string[],
  batchId?: string,
): Promise<string | undefined> {
  if (batchId !== undefined && (await hasOpenReport(db, batchId))) {
    return `The report of batch "${batchId}" on GitHub is not complete`;
  }
  if (jobIds.length === 0) return undefined;
  return (await findComparedJob(db, jobIds)) ?? findOpenReport(db, jobIds);
}

async function findComparedJob(
  db: Store["db"],
  jobIds: readonly string[],
): Promise<string | undefined> {
  const compared = await db
    .selectFrom("jobs")
    .select(["id", "baseline_job_id"])
    .where("baseline_job_id", "in", jobIds)
    .where("status", "in", liveStatuses)
    .limit(1)
    .executeTakeFirst();
  return compared && `Job "${compared.id}" is compared with job "${compared.baseline_job_id}"`;
}

/** @param jobIds of jobs, or the query that finds them */
export async function findOpenReport(
  db: Store["db"],
  jobIds: readonly string[] | Expression<string>,
): Promise<string | undefined> {
  const entries = reportJobs(db).as("entry");
  const report = await db
    .selectFrom("github_reports")
    .innerJoin(entries, (join) => join.onTrue())
    .select(["github_reports.id", "entry.value"])
    .where("is_open", "=", sql.lit(1))
    .where("entry.value", "in", jobIds)
    .limit(1)
    .executeTakeFirst();
  return (
    report && `The report of batch "${report.id}" does not show the end of job "${report.value}"`
  );
}

/** Whether a batch has a check run on GitHub that is not complete. */
async function hasOpenReport(db: Store["db"], batchId: string): Promise<boolean> {
  const report = await db
    .selectFrom("github_reports")
    .select("id")
    .where("id", "=", batchId)
    .where("is_open", "=", 1)
    .executeTakeFirst();
  return report !== undefined;
}

/**
 * Deletes jobs that have ended, in steps: a deletion that is interrupted can be repeated. Their
 * blobs are released.
 */
export async function deleteEndedJobs(store: Store, jobIds: readonly string[]): Promise<void> {
  for (const id of jobIds) await deleteLog(store, id);
  for (let start = 0; start < jobIds.length; start += jobsPerStep) {
    const ids = jobIds.slice(start, start + jobsPerStep);
    await runWriteTransaction(store, (writing) => deleteJobRows(writing, ids));
  }
}

async function deleteJobRows(writing: WriteTransaction, ids: readonly string[]): Promise<void> {
  const { trx, effects } = writing;
  await deleteJobBlobs(writing, ids);
  const tables = [
    "job_labels",
    "log_lines",
    "log_segments",
    "attempts",
    "github_job_checks",
    "baselines",
  ] as const;
  for (const table of tables) await trx.deleteFrom(table).where("job_id", "in", ids).execute();
  await trx.deleteFrom("service_keys").where("name", "in", ids.map(linkKeyName)).execute();
  await rememberResources(writing, "jobs", ids);
  await trx.deleteFrom("jobs").where("id", "in", ids).execute();
  for (const id of ids) effects.changed.add(id);
}

/** Custom resources that are still there must not become records again. */
export async function rememberResources(
  { trx, now }: WriteTransaction,
  table: "jobs" | "batches",
  ids: readonly string[],
): Promise<void> {
  await trx
    .insertInto("deleted_resources")
    .columns(["id", "deleted_at"])
    .expression(
      trx
        .selectFrom(table)
        .select(["id", sql.lit(now.toISOString()).as("deleted_at")])
        .where("id", "in", ids)
        .where("resource", "is not", null),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Whether a live job, the newest baseline of a branch or an unfinished report needs the jobs, or
 * the batch that goes with them.
 */
export async function isJobNeeded(
  db: Store["db"],
  jobIds: readonly string[],
  batchId?: string,
): Promise<boolean> {
  if ((await findUseOfJobs(db, jobIds, batchId)) !== undefined) return true;
  return hasNewestBaseline(db, jobIds);
}

/**
 * `withBaselines`: whether the newest baseline of a branch may go. `batchId`: of the batch that
 * goes with the jobs.
 * @throws ServiceError job_in_use
 */
export async function requireUnused(
  db: Store["db"],
  jobIds: readonly string[],
  { withBaselines = false, batchId }: { withBaselines?: boolean | undefined; batchId?: string },
): Promise<void> {
  const use = await findUseOfJobs(db, jobIds, batchId);
  if (use !== undefined) throw new ServiceError("job_in_use", use);
  if (withBaselines || !(await hasNewestBaseline(db, jobIds))) return;
  const message = "Later jobs are compared with it: deleting a baseline needs baselines:write";
  throw new ServiceError("job_in_use", message);
}

async function hasNewestBaseline(db: Store["db"], jobIds: readonly string[]): Promise<boolean> {
  if (jobIds.length === 0) return false;
  const own = db.selectFrom("baselines as own").select("own.job_id");
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
