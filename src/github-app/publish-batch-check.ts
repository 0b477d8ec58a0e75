import { createHash } from "node:crypto";
import type { CheckRunAction, CheckRunContent } from "../github/check-run-requests.ts";
import type { CheckRunWriter } from "../github/check-run-writer.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import { buildAnnotations } from "../report/build-annotations.ts";
import type { Verdict } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import type { ReportRow } from "../report/report.ts";
import { reportCheckName } from "./report-check-name.ts";

interface BatchResults {
  readonly rows: readonly ReportRow[];
  readonly verdict: Verdict;
  readonly actions: readonly CheckRunAction[];
}

interface CheckDependencies {
  readonly records: Records;
  readonly checks: CheckRunWriter;
  /** Address of the service for links, with `/v1`. */
  readonly publicUrl: string;
}

/** Writes the check run of the batch, where it changes. Gives the report with what was recorded. */
export async function publishBatchCheck(
  report: ReportRecord,
  { rows, verdict, actions }: BatchResults,
  { records, checks, publicUrl }: CheckDependencies,
): Promise<ReportRecord> {
  const { id, round, settings } = report;
  const url = `${publicUrl}/batches/${id}`;
  const name = reportCheckName(report);
  const output = renderBatchCheck({ name, url, rows }, verdict);
  const { conclusion } = verdict;
  const content: CheckRunContent = conclusion ? { output, conclusion, actions } : { output };
  const contentHash = hashContent(content);
  if (contentHash === report.contentHash) return report;
  let { checkRun } = report;
  if (checkRun === null) {
    const identity = { name, externalId: `${id}/${round}`, detailsUrl: url };
    checkRun = await checks.createOrUpdate(identity, content);
  } else {
    const { places } = settings;
    const annotations = conclusion && places ? buildAnnotations(rows, places) : [];
    await checks.update(checkRun, { ...content, annotations });
  }
  await records.reports.recordCheckRun(report, { checkRun, contentHash });
  return { ...report, checkRun, contentHash };
}

function hashContent(content: CheckRunContent): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex");
}
