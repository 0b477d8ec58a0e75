import { classifyOutcome } from "../report/outcome.ts";
import type { ReportRow } from "../report/report.ts";
import type { ReportRecord } from "../records/insert-report.ts";
import type { CheckRunAction } from "./app-check-run-writer.ts";

export const rerunAction: CheckRunAction = {
  identifier: "rerun",
  label: "Re-run",
  description: "Submit the jobs anew that did not pass",
};

export const acceptBaselineAction: CheckRunAction = {
  identifier: "accept-baseline",
  label: "Accept as baseline",
  description: "Compare later results with these",
};

/** Whether the job is one that a re-run submits anew. */
export function isRerunnable(row: ReportRow): boolean {
  return ["failed", "missed", "cancelled"].includes(classifyOutcome(row));
}

/** The buttons of a check run that is completed. */
export function checkRunActions(
  { request, isAccepted }: ReportRecord,
  rows: readonly ReportRow[],
): CheckRunAction[] {
  const isCompared = request.suite !== undefined && request.revision !== undefined;
  const isBeyondGates = rows.some((row) => ["missed", "warned"].includes(classifyOutcome(row)));
  return [
    ...(rows.some(isRerunnable) ? [rerunAction] : []),
    ...(isCompared && isBeyondGates && !isAccepted && !request.dryRun
      ? [acceptBaselineAction]
      : []),
  ];
}
