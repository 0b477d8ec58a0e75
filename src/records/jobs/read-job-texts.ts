import type { ExpressionBuilder, SelectQueryBuilder } from "kysely";
import { summarizeJob } from "../../contract/jobs/job-summary.ts";
import { parseJob } from "./find-record.ts";
import type { Schema } from "../database/schema.ts";

/** Rows of jobs, of which nothing is selected yet. */
type SelectedJobs = SelectQueryBuilder<Schema, "jobs", object>;

export interface JobText {
  readonly id: string;
  /** The job or its summary as the contract defines it, as JSON. */
  readonly text: string;
}

/** Reads jobs in the order of `jobs`. */
export type JobTextReader = (jobs: SelectedJobs) => Promise<JobText[]>;

export const readDocuments: JobTextReader = (jobs) =>
  jobs.select(["jobs.id", "jobs.document as text"]).execute();

export const readSummaries: JobTextReader = async (jobs) => {
  const rows = await jobs.select("jobs.id").select(summaryColumns).execute();
  return rows.map((row) => ({ id: row.id, text: summaryText(row) }));
};

/** The document too where the summary is not stored. */
export function summaryColumns(eb: ExpressionBuilder<Schema, "jobs">) {
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
