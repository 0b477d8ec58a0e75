import type { CheckRunWriter } from "../github/check-run-writer.ts";
import { jobCheckRun } from "../github/job-check-run.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import type { EndedRow } from "../report/ended-row.ts";
import { reportCheckName } from "./report-check-name.ts";
import { isJobCheckWanted, maxJobChecks } from "../report/is-job-check-wanted.ts";

interface PublishOptions {
  readonly records: Records;
  readonly checks: CheckRunWriter;
  readonly signal: AbortSignal;
}

/** Last lines of a job's output that its check run shows. */
const logTailLines = 100;

/** Creates the jobs' own check runs that are wanted and not recorded. */
export async function publishJobChecks(
  report: ReportRecord,
  rows: readonly EndedRow[],
  options: PublishOptions,
): Promise<void> {
  const { jobChecks } = report.settings;
  const jobCount = report.jobIds.length;
  const created = new Set(await options.records.reports.listCheckedJobs(report));
  for (const row of rows) {
    if (created.size >= maxJobChecks || options.signal.aborted) return;
    if (created.has(row.id) || !isJobCheckWanted(row, { jobChecks, jobCount })) continue;
    await publishJobCheck(report, row, options);
    created.add(row.id);
  }
}

async function publishJobCheck(
  report: ReportRecord,
  row: EndedRow,
  { records, checks }: PublishOptions,
): Promise<void> {
  const entries = await records.logs.tail(row.id, logTailLines);
  const lines = entries.map(({ text }) => text);
  const { name, content } = jobCheckRun(row, lines, {
    checkName: reportCheckName(report),
    failOn: report.settings.failOn,
  });
  const identity = { name, externalId: row.id, detailsUrl: row.logUrl };
  await checks.createOrUpdate(identity, content);
  await records.reports.recordJobCheck(report, row.id);
}
