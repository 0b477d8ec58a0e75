import type { Updateable } from "kysely";
import type { Job } from "../contract/job.ts";
import { parseJob } from "./save-job-records.ts";
import { type ReportRecord, parseReportRow } from "./insert-report.ts";
import type { Schema } from "./schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** A report as long as none of its jobs is submitted anew and its results are not accepted. */
type ReportRound = Pick<ReportRecord, "id" | "round" | "isAccepted">;

/** What GitHub was told last in a round of a report. */
interface ReportedCheckRun {
  readonly checkRun: number;
  /** Hash of what the check run shows. */
  readonly contentHash: string;
}

export function reportRecords(store: Store) {
  const { db } = store;
  return {
    /** Reports with something left to tell, of all projects. */
    async listOpen(): Promise<ReportRecord[]> {
      const rows = await db
        .selectFrom("github_reports")
        .selectAll()
        .where("is_open", "=", 1)
        .orderBy("id")
        .execute();
      return rows.map(parseReportRow);
    },

    /** The report whose present round has the check run. */
    async findByCheckRun(checkRun: number): Promise<ReportRecord | undefined> {
      const found = db.selectFrom("github_reports").selectAll().where("check_run", "=", checkRun);
      const row = await found.executeTakeFirst();
      return row && parseReportRow(row);
    },

    /** Jobs that count for the report, in the order of models × targets. */
    async listJobs({ jobIds }: Pick<ReportRecord, "jobIds">): Promise<Job[]> {
      const rows = await db
        .selectFrom("jobs")
        .select(["id", "document"])
        .where("id", "in", jobIds)
        .execute();
      const byId = new Map(rows.map(({ id, document }) => [id, document]));
      return jobIds.flatMap((id) => {
        const document = byId.get(id);
        return document === undefined ? [] : parseJob(document);
      });
    },

    async recordCheckRun(
      report: ReportRound,
      { checkRun, contentHash }: ReportedCheckRun,
    ): Promise<void> {
      await updateReportRound(db, report, { check_run: checkRun, told: contentHash });
    },

    /** Nothing is told any more, until jobs are submitted anew or results accepted. */
    async close(report: ReportRound): Promise<void> {
      await updateReportRound(db, report, { is_open: 0 });
    },

    /** Notes that the results were made what later ones are compared with, which is told. */
    accept(report: ReportRound): Promise<void> {
      return runWriteTransaction(store, async ({ trx, effects }) => {
        await updateReportRound(trx, report, { is_accepted: 1, is_open: 1 });
        effects.changed.add(report.id);
      });
    },

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
      const row = { job_id: jobId, report_id: id };
      const added = db.insertInto("github_job_checks").values(row);
      await added.onConflict((conflict) => conflict.doNothing()).execute();
    },
  };
}

async function updateReportRound(
  db: Store["db"] | WriteTransaction["trx"],
  { id, round, isAccepted }: ReportRound,
  columns: Updateable<Schema["github_reports"]>,
): Promise<void> {
  const ofRound = db
    .updateTable("github_reports")
    .set(columns)
    .where("id", "=", id)
    .where("round", "=", round);
  await ofRound.where("is_accepted", "=", isAccepted ? 1 : 0).execute();
}
