import type { AliasableExpression, ExpressionBuilder, SelectQueryBuilder } from "kysely";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { parseJob } from "./find-record.ts";
import type { Schema } from "../database/schema.ts";

/** Rows of jobs, with nothing selected yet. */
type SelectedJobs = SelectQueryBuilder<Schema, "jobs", object>;
type JobColumns = ExpressionBuilder<Schema, "jobs">;

interface JobText {
  readonly id: string;
  /** The job or its summary as the contract defines it, as JSON. */
  readonly text: string;
}

/** Jobs as JSON, whole or their summaries. */
export interface JobTexts {
  /** Bytes of what `read` reads for a job. */
  measure(this: void, eb: JobColumns): AliasableExpression<number>;
  /** In the order of `jobs`. */
  read(this: void, jobs: SelectedJobs): Promise<JobText[]>;
}

export const documentTexts: JobTexts = {
  measure: (eb) => eb.fn<number>("octet_length", ["jobs.document"]),
  read: (jobs) => jobs.select(["jobs.id", "jobs.document as text"]).execute(),
};

export const summaryTexts: JobTexts = {
  measure: (eb) => eb.fn<number>("octet_length", [eb.fn.coalesce("jobs.summary", "jobs.document")]),
  async read(jobs) {
    const rows = await jobs.select("jobs.id").select(summaryColumns).execute();
    return rows.map((row) => ({ id: row.id, text: summaryText(row) }));
  },
};

/** The document too where the summary is not stored. */
export function summaryColumns(eb: JobColumns) {
  const isMissing = eb.case().when("jobs.summary", "is", null);
  return ["jobs.summary" as const, isMissing.then(eb.ref("jobs.document")).end().as("document")];
}

/** A job's summary as JSON, from its columns: nothing parses one that is stored. */
export function summaryText({ summary, document }: SummaryRow): string {
  return summary ?? JSON.stringify(summarizeJob(parseJob(document ?? "")));
}

interface SummaryRow {
  readonly summary: string | null;
  readonly document: string | null;
}
