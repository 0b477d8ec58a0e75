import { hasFailedGate } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import type { ReportRecord } from "../records/report-record.ts";
import type { Records } from "../records/open-records.ts";
import type { EndedRow } from "../report/render-job.ts";
import type { ReportRow } from "../report/report.ts";

/** The jobs of a report as they are now. */
export async function reportRows({ reports }: Pick<Records, "reports">, report: ReportRecord): Promise<ReportRow[]> {
  const jobs = await reports.jobs(report);
  return jobs.map((job) => rowOf(job, report.settings.serviceUrl));
}

function rowOf(job: Job, serviceUrl: string): ReportRow {
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

export function isEnded(row: ReportRow): row is EndedRow {
  return row.job !== undefined;
}
