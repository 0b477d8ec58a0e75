import type { BatchRequest } from "../contract/jobs/batch.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { Owner } from "../contract/people/principal.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";
import type { Records } from "../records/open-records.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import { isRerunnable } from "./check-run-actions.ts";
import { loadReportRows } from "./load-report-rows.ts";

/** Submits jobs again, which replace the former ones in a report. */
export type SubmitRerun = (
  owner: Owner,
  order: {
    readonly batch: BatchRequest;
    readonly jobs: readonly Job[];
    readonly report: ReportRecord;
    readonly audit: AuditedChange;
  },
) => Promise<unknown>;

interface RerunDependencies {
  readonly records: Records;
  /** Address of the service for links, with `/v1`. */
  readonly publicUrl: string;
  readonly submit: SubmitRerun;
  readonly audit: AuditedChange;
}

/** Submits the jobs of a report again that did not pass, and gives their number. */
export async function rerunJobs(
  report: ReportRecord,
  { records, publicUrl, submit, audit }: RerunDependencies,
): Promise<number> {
  const owner = await records.owners.findOfBatch(report.id);
  if (owner === undefined) return 0;
  const rows = await loadReportRows(records, report, publicUrl);
  const jobs = rows.filter(isRerunnable).flatMap(({ job }) => job ?? []);
  if (jobs.length > 0) await submit(owner, { batch: report.request, jobs, report, audit });
  return jobs.length;
}
