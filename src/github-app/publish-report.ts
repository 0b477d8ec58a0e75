import { createHash } from "node:crypto";
import type { Records } from "../records/open-records.ts";
import type { ReportRecord } from "../records/insert-report.ts";
import { buildAnnotations } from "../report/build-annotations.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import { isJobCheckWanted, maxJobChecks } from "../report/is-job-check-wanted.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { type EndedRow, renderJobCheck } from "../report/render-job.ts";
import type { ReportRow } from "../report/report.ts";
import { checkRunActions } from "./check-run-actions.ts";
import {
  type CheckRunAction,
  type CheckRunContent,
  createAppCheckRunWriter,
} from "./app-check-run-writer.ts";
import type { GitHubClient } from "./github-client.ts";
import { isEndedRow, loadReportRows } from "./load-report-rows.ts";

type AppCheckRunWriter = ReturnType<typeof createAppCheckRunWriter>;

interface PublishOptions {
  readonly records: Records;
  readonly client: GitHubClient;
  /** Whether check runs get buttons. */
  readonly hasActions: boolean;
  /** Whether the progress of jobs is to be told now. */
  readonly withProgress: boolean;
  readonly signal: AbortSignal;
}

/** Tail of a job's output that its check run shows, lines. */
const logTailLines = 100;

/** Writes what GitHub does not show yet of a report; what was written is noted, so that it may be broken off at any time. */
export async function publishReport(report: ReportRecord, options: PublishOptions): Promise<void> {
  const { records, client, hasActions, withProgress, signal } = options;
  const checks = createAppCheckRunWriter(client, report.settings);
  const rows = await loadReportRows(records, report);
  const { settings, isAccepted } = report;
  const verdict = conclude(
    { rows },
    isAccepted && settings.failOn !== "nothing" ? "jobs" : settings.failOn,
  );
  const inProgress = { ...verdict, conclusion: null };
  const isNew = report.checkRun === null;
  if (isNew || (verdict.conclusion === null && withProgress)) {
    report = await publishBatchCheck(
      report,
      { rows, verdict: inProgress, actions: [] },
      { records, checks },
    );
  }
  await publishJobChecks(report, rows.filter(isEndedRow), { records, checks, signal });
  if (verdict.conclusion === null || signal.aborted) return;
  const actions = hasActions ? checkRunActions(report, rows) : [];
  await publishBatchCheck(report, { rows, verdict, actions }, { records, checks });
  await records.reports.close(report);
}

interface BatchResults {
  readonly rows: readonly ReportRow[];
  readonly verdict: Verdict;
  readonly actions: readonly CheckRunAction[];
}

interface CheckDependencies {
  readonly records: Records;
  readonly checks: AppCheckRunWriter;
}

async function publishBatchCheck(
  report: ReportRecord,
  { rows, verdict, actions }: BatchResults,
  { records, checks }: CheckDependencies,
): Promise<ReportRecord> {
  const { id, round, settings } = report;
  const url = `${settings.serviceUrl}/batches/${id}`;
  const output = renderBatchCheck({ name: settings.checkName, url, rows }, verdict);
  const { conclusion } = verdict;
  const content: CheckRunContent = conclusion ? { output, conclusion, actions } : { output };
  const contentHash = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  if (contentHash === report.contentHash) return report;
  let { checkRun } = report;
  if (checkRun === null) {
    const identity = { name: settings.checkName, externalId: `${id}/${round}`, detailsUrl: url };
    checkRun = await checks.createOrUpdate(identity, content);
  } else
    await checks.update(
      checkRun,
      content,
      conclusion && settings.places ? buildAnnotations(rows, settings.places) : [],
    );
  await records.reports.recordCheckRun(report, { checkRun, contentHash });
  return { ...report, checkRun, contentHash };
}

/** A check run for each job that is to have one, made once. */
async function publishJobChecks(
  report: ReportRecord,
  rows: readonly EndedRow[],
  { records, checks, signal }: CheckDependencies & Pick<PublishOptions, "signal">,
): Promise<void> {
  const { checkName, jobChecks, failOn } = report.settings;
  const jobCount = report.jobIds.length;
  const made = new Set(await records.reports.listCheckedJobs(report));
  for (const row of rows) {
    if (made.size >= maxJobChecks || signal.aborted) return;
    if (made.has(row.id) || !isJobCheckWanted(row, { jobChecks, jobCount })) continue;
    const lines = await records.logs.tail(row.id, logTailLines);
    const { conclusion } = conclude({ rows: [row] }, failOn);
    const output = renderJobCheck(
      row,
      lines.map(({ text }) => text),
    );
    const name = `${checkName}: ${row.model} for ${row.target}`;
    await checks.createOrUpdate(
      { name, externalId: row.id, detailsUrl: row.logUrl },
      { output, conclusion: conclusion ?? "neutral" },
    );
    await records.reports.recordJobCheck(report, row.id);
    made.add(row.id);
  }
}
