import { setImmediate as nextTurn } from "node:timers/promises";
import type { Updateable } from "kysely";
import type { Job } from "../../contract/jobs/job.ts";
import { parseReportRow, type ReportRecord } from "./insert-report.ts";
import { parseJob } from "./find-record.ts";
import { reportedCommit } from "../database/dialect-sql.ts";
import type { Schema } from "../database/schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "../database/store.ts";

/** A report as long as none of its jobs is submitted again and its results are not accepted. */
type ReportedResults = Pick<ReportRecord, "id" | "jobIds" | "isAccepted">;

/** Documents of jobs that are read at once: each may have a megabyte. */
const jobsAtOnce = 16;

interface CommitOnGitHub {
  readonly repository: string;
  readonly repositoryNumber: number;
  readonly sha: string;
}

export function reportRecords(store: Store) {
  const { db } = store;
  return {
    /** Reports with something left to write, of all projects. */
    async listOpen(): Promise<ReportRecord[]> {
      const rows = await db
        .selectFrom("github_reports")
        .selectAll()
        .where("is_open", "=", 1)
        .orderBy("id")
        .execute();
      return rows.map(parseReportRow);
    },

    /** The report that a batch asked for. */
    async find(id: string): Promise<ReportRecord | undefined> {
      const row = await db
        .selectFrom("github_reports")
        .selectAll()
        .where("id", "=", id)
        .executeTakeFirst();
      return row && parseReportRow(row);
    },

    /** The report whose present round has the check run. */
    async findByCheckRun(checkRun: number): Promise<ReportRecord | undefined> {
      const row = await db
        .selectFrom("github_reports")
        .selectAll()
        .where("check_run", "=", checkRun)
        .executeTakeFirst();
      return row && parseReportRow(row);
    },

    /** The report for which the job has a check run of its own. */
    async findByCheckedJob(jobId: string): Promise<ReportRecord | undefined> {
      const row = await db
        .selectFrom("github_reports")
        .innerJoin("github_job_checks", "github_job_checks.report_id", "github_reports.id")
        .selectAll("github_reports")
        .where("job_id", "=", jobId)
        .executeTakeFirst();
      return row && parseReportRow(row);
    },

    /**
     * The reports on a commit of a repository, the newest last. One that knows the repository's
     * number is not found by its name.
     */
    async listOfCommit(commit: CommitOnGitHub): Promise<ReportRecord[]> {
      const { repository, repositoryNumber, sha } = commit;
      const rows = await db
        .selectFrom("github_reports")
        .selectAll()
        .where(reportedCommit(db), "=", sha)
        .orderBy("id")
        .execute();
      return rows
        .map(parseReportRow)
        .filter(({ settings }) =>
          settings.repositoryNumber === undefined
            ? settings.repository.toLowerCase() === repository.toLowerCase()
            : settings.repositoryNumber === repositoryNumber,
        );
    },

    /**
     * Jobs that count for the report, in the order of models × targets, without their files: each
     * may have a thousand, and no report shows them.
     */
    async listJobs({ jobIds }: Pick<ReportRecord, "jobIds">): Promise<Job[]> {
      const jobs: Job[] = [];
      for (let at = 0; at < jobIds.length; at += jobsAtOnce) {
        const ids = jobIds.slice(at, at + jobsAtOnce);
        const rows = await db
          .selectFrom("jobs")
          .select(["id", "document"])
          .where("id", "in", ids)
          .execute();
        const documents = new Map(rows.map(({ id, document }) => [id, document]));
        for (const id of ids) {
          const document = documents.get(id);
          if (document !== undefined) jobs.push({ ...parseJob(document), artifacts: [] });
        }
        // SQLite answers at once: others would wait for all jobs.
        await nextTurn();
      }
      return jobs;
    },

    /** Records the check run of a round as it was last written, with a hash of what it shows. */
    async recordCheckRun(
      { id, round }: Pick<ReportRecord, "id" | "round">,
      { checkRun, contentHash }: { readonly checkRun: number; readonly contentHash: string },
    ): Promise<void> {
      await db
        .updateTable("github_reports")
        .set({ check_run: checkRun, content_hash: contentHash })
        .where("id", "=", id)
        .where("round", "=", round)
        .execute();
    },

    /** Whether the check run may be completed: jobs that are submitted from then on get another. */
    beginConclusion: (report: ReportedResults) => updateReport(db, report, { content_hash: null }),

    /** Ends a round: until jobs are submitted again or results accepted, nothing is written. */
    close: (report: ReportedResults) => updateReport(db, report, { is_open: 0 }),

    /** Records that the results became baselines, which the check run then shows. */
    accept: (report: ReportedResults) =>
      runWriteTransaction(store, async ({ trx, effects }) => {
        await updateReport(trx, report, { is_accepted: 1, is_open: 1 });
        effects.changed.add(report.id);
      }),

    /** Ids of jobs that have check runs of their own. */
    async listCheckedJobs({ id }: Pick<ReportRecord, "id">): Promise<ReadonlySet<string>> {
      const rows = await db
        .selectFrom("github_job_checks")
        .select("job_id")
        .where("report_id", "=", id)
        .execute();
      return new Set(rows.map((row) => row.job_id));
    },

    async recordJobCheck({ id }: Pick<ReportRecord, "id">, jobId: string): Promise<void> {
      await db
        .insertInto("github_job_checks")
        .values({ job_id: jobId, report_id: id })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    },
  };
}

/** Whether the results are still those of the report. */
async function updateReport(
  db: Store["db"] | WriteTransaction["trx"],
  { id, jobIds, isAccepted }: ReportedResults,
  columns: Updateable<Schema["github_reports"]>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("github_reports")
    .set(columns)
    .where("id", "=", id)
    .where("jobs", "=", JSON.stringify(jobIds))
    .where("is_accepted", "=", isAccepted ? 1 : 0)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
