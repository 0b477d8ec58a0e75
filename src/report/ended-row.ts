import type { Job } from "../contract/jobs/job.ts";
import type { ReportRow } from "./report.ts";

/** The row of a job that has ended. */
export type EndedRow = ReportRow & { readonly job: Job };

export function isEndedRow(row: ReportRow): row is EndedRow {
  return row.job !== undefined;
}
