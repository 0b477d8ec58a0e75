import * as core from "@actions/core";
import { formatBytes } from "../contract/text/format-bytes.ts";
import type { Job } from "../contract/jobs/job.ts";
import { describeJobFailure } from "../report/describe-job-failure.ts";
import { formatDecibels } from "../report/format-figure.ts";
import { jobTitle } from "../report/job-title.ts";
import { classifyOutcome, outcomes } from "../report/outcome.ts";
import type { Report, ReportRow } from "../report/report.ts";
import { escapeLogLine } from "./escape-log-line.ts";

/** Logs the outcome of each job on a line. */
export function logResults({ rows }: Report): void {
  for (const row of rows) core.info(escapeLogLine(resultLine(row)));
}

function resultLine(row: ReportRow): string {
  const { size, accuracy } = row.job?.telemetry ?? {};
  const parts = [
    `${jobTitle(row)} ${outcomes[classifyOutcome(row)].words}`,
    size && describeSizes(size),
    accuracy && formatDecibels(accuracy.sqnrDb),
    row.job && describeJobFailure(row.job),
  ];
  return parts.filter(Boolean).join(", ");
}

function describeSizes({
  originalBytes,
  resultBytes,
  ratio,
}: NonNullable<Job["telemetry"]["size"]>): string {
  return `${formatBytes(originalBytes)} → ${formatBytes(resultBytes)} (${ratio.toFixed(2)})`;
}
