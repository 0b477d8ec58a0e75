import { hasFailedGate } from "../contract/jobs/gate.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import type { ReportRow } from "../report/report.ts";

/** The jobs of a report as they are now. */
export async function loadReportRows(
  { reports }: Pick<Records, "reports">,
  report: ReportRecord,
  publicUrl: string,
): Promise<ReportRow[]> {
  const jobs = await reports.listJobs(report);
  return jobs.map((job) => jobRow(job, publicUrl));
}

function jobRow(job: Job, publicUrl: string): ReportRow {
  const { id, model, target, status } = job;
  return {
    id,
    model: model.name,
    target,
    status,
    gatesFailed: hasFailedGate(job.gates),
    logUrl: `${publicUrl}/jobs/${id}/logs`,
    job: isTerminal(status) ? job : undefined,
  };
}
