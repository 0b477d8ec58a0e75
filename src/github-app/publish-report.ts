import { CheckRunWriter } from "../github/check-run-writer.ts";
import { parseRepository } from "../github/parse-repository.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import { isEndedRow } from "../report/ended-row.ts";
import type { ReportRow } from "../report/report.ts";
import { checkRunActions } from "./check-run-actions.ts";
import type { GitHubClient } from "./github-client.ts";
import { loadReportRows } from "./load-report-rows.ts";
import { publishBatchCheck } from "./publish-batch-check.ts";
import { publishJobChecks } from "./publish-job-checks.ts";

interface PublishOptions {
  readonly records: Records;
  readonly client: GitHubClient;
  /** Address of the service for links, with `/v1`. */
  readonly publicUrl: string;
  /** Whether check runs get buttons. */
  readonly hasActions: boolean;
  /** Whether an update of the progress is due. */
  readonly withProgress: boolean;
  readonly signal: AbortSignal;
}

/**
 * Writes what the check runs of a report lack. Every write is recorded, so that it can stop at any
 * time.
 */
export async function publishReport(report: ReportRecord, options: PublishOptions): Promise<void> {
  const { records, publicUrl, hasActions, withProgress, signal } = options;
  const checks = createWriter(report, options.client);
  const rows = await loadReportRows(records, report, publicUrl);
  const verdict = concludeReport(report, rows);
  const isDue = verdict.conclusion === null && withProgress;
  if (report.checkRun === null || isDue) {
    const progress = { rows, verdict: { ...verdict, conclusion: null }, actions: [] };
    report = await publishBatchCheck(report, progress, { records, checks, publicUrl });
  }
  await publishJobChecks(report, rows.filter(isEndedRow), { records, checks, signal });
  if (verdict.conclusion === null || signal.aborted) return;
  const actions = hasActions ? checkRunActions(report, rows) : [];
  await publishBatchCheck(report, { rows, verdict, actions }, { records, checks, publicUrl });
  await records.reports.close(report);
}

/** A write that fails is tried again by the report loop. */
function createWriter({ settings }: ReportRecord, client: GitHubClient): CheckRunWriter {
  const repo = parseRepository(settings.repository);
  return new CheckRunWriter(client, { repo, headSha: settings.sha, maxTries: 1 });
}

/** Gates do not fail a report whose results were accepted. */
function concludeReport(
  { settings: { failOn }, isAccepted }: ReportRecord,
  rows: readonly ReportRow[],
): Verdict {
  return conclude({ rows }, isAccepted && failOn !== "nothing" ? "jobs" : failOn);
}
