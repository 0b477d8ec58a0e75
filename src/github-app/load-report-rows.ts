import { hasFailedGate } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import type { ReportRecord } from "../records/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import type { EndedRow } from "../report/render-job.ts";
import type { ReportRow } from "../report/report.ts";

/** The jobs of a report as they are now. */
export async function loadReportRows(
  { reports }: Pick<Records, "reports">,
  report: ReportRecord,
): Promise<ReportRow[]> {
  const jobs = await reports.listJobs(report);
  return jobs.map((job) => jobRow(job, report.settings.serviceUrl));
}

function jobRow(job: Job, serviceUrl: string): ReportRow {
  const { id, status } = job;
  return {
    id,
    model: job.model.name,
    target: job.target,
    status,
    gatesFailed: hasFailedGate(job.gates),
    logUrl: `${serviceUrl}/jobs/${id}/logs`,
    ...(isTerminal(status) && { job }),
  };
}

export function isEndedRow(row: ReportRow): row is EndedRow {
  return row.job !== undefined;
}
