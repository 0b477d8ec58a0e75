import { createHash } from "node:crypto";
import type { Records } from "../records/open-records.ts";
import type { ReportRecord } from "../records/report-record.ts";
import { annotationsOf } from "../report/annotations.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import { isJobCheckWanted, maxJobChecks } from "../report/is-job-check-wanted.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { type EndedRow, renderJobCheck } from "../report/render-job.ts";
import type { ReportRow } from "../report/report.ts";
import { actionsOf } from "./check-actions.ts";
import { type CheckAction, type CheckContent, checkRunsOf } from "./check-runs.ts";
import type { GitHubClient } from "./github-client.ts";
import { isEnded, reportRows } from "./report-rows.ts";

type CheckRuns = ReturnType<typeof checkRunsOf>;

interface Telling {
  readonly records: Records;
  readonly client: GitHubClient;
  /** Whether check runs get buttons. */
  readonly hasButtons: boolean;
  /** Whether the progress of jobs is to be told now. */
  readonly withProgress: boolean;
  readonly signal: AbortSignal;
}

/** Tail of a job's output that its check run shows, lines. */
const tailLines = 100;

/** Writes what GitHub does not show yet of a report; what was written is noted, so that it may be broken off at any time. */
export async function tellReport(report: ReportRecord, telling: Telling): Promise<void> {
  const { records, client, hasButtons, withProgress, signal } = telling;
  const checks = checkRunsOf(client, report.settings);
  const rows = await reportRows(records, report);
  const { settings, isAccepted } = report;
  const verdict = conclude({ rows }, isAccepted && settings.failOn !== "nothing" ? "jobs" : settings.failOn);
  const begun = { ...verdict, conclusion: null };
  const isNew = report.checkRun === null;
  if (isNew || (verdict.conclusion === null && withProgress)) {
    report = await tellBatch(report, { rows, verdict: begun, actions: [] }, { records, checks });
  }
  await tellJobs(report, rows.filter(isEnded), { records, checks, signal });
  if (verdict.conclusion === null || signal.aborted) return;
  const actions = hasButtons ? actionsOf(report, rows) : [];
  await tellBatch(report, { rows, verdict, actions }, { records, checks });
  await records.reports.close(report);
}

interface Results {
  readonly rows: readonly ReportRow[];
  readonly verdict: Verdict;
  readonly actions: readonly CheckAction[];
}

interface Writer {
  readonly records: Records;
  readonly checks: CheckRuns;
}

async function tellBatch(
  report: ReportRecord,
  { rows, verdict, actions }: Results,
  { records, checks }: Writer,
): Promise<ReportRecord> {
  const { id, round, settings } = report;
  const url = `${settings.serviceUrl}/batches/${id}`;
  const output = renderBatchCheck({ name: settings.checkName, url, rows }, verdict);
  const { conclusion } = verdict;
  const content: CheckContent = conclusion ? { output, conclusion, actions } : { output };
  const told = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  if (told === report.told) return report;
  let { checkRun } = report;
  if (checkRun === null) {
    const identity = { name: settings.checkName, externalId: `${id}/${round}`, detailsUrl: url };
    checkRun = await checks.write(identity, content);
  } else
    await checks.update(checkRun, content, conclusion && settings.places ? annotationsOf(rows, settings.places) : []);
  await records.reports.noteTold(report, { checkRun, told });
  return { ...report, checkRun, told };
}

/** A check run for each job that is to have one, made once. */
async function tellJobs(
  report: ReportRecord,
  rows: readonly EndedRow[],
  { records, checks, signal }: Writer & Pick<Telling, "signal">,
): Promise<void> {
  const { checkName, jobChecks, failOn } = report.settings;
  const jobCount = report.jobIds.length;
  const made = new Set(await records.reports.checkedJobs(report));
  for (const row of rows) {
    if (made.size >= maxJobChecks || signal.aborted) return;
    if (made.has(row.id) || !isJobCheckWanted(row, { jobChecks, jobCount })) continue;
    const lines = await records.logs.tail(row.id, tailLines);
    const { conclusion } = conclude({ rows: [row] }, failOn);
    const output = renderJobCheck(
      row,
      lines.map(({ text }) => text),
    );
    const name = `${checkName}: ${row.model} for ${row.target}`;
    await checks.write(
      { name, externalId: row.id, detailsUrl: row.logUrl },
      { output, conclusion: conclusion ?? "neutral" },
    );
    await records.reports.noteJobCheck(report, row.id);
    made.add(row.id);
  }
}
