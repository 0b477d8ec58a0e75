import type { CheckRunAction } from "../github/check-run-requests.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import { classifyOutcome, type ReportRow } from "../report/report.ts";

export const rerunAction: CheckRunAction = {
  identifier: "rerun",
  label: "Re-run",
  description: "Submit the jobs again that did not pass",
};

export const acceptBaselineAction: CheckRunAction = {
  identifier: "accept-baseline",
  label: "Accept as baseline",
  description: "Compare later results with these",
};

/** Whether a re-run submits the job again. */
export function isRerunnable(row: ReportRow): boolean {
  return ["failed", "missed", "cancelled"].includes(classifyOutcome(row));
}

/** The buttons of a completed check run. */
export function checkRunActions(
  report: ReportRecord,
  rows: readonly ReportRow[],
): CheckRunAction[] {
  const actions = [];
  if (rows.some(isRerunnable)) actions.push(rerunAction);
  if (isAcceptable(report, rows)) actions.push(acceptBaselineAction);
  return actions;
}

/** Whether results that a gate refuses can become the baseline. */
function isAcceptable(
  { request, isAccepted, isAcceptable: isAllowed }: ReportRecord,
  rows: readonly ReportRow[],
): boolean {
  const isCompared = request.suite !== undefined && request.revision !== undefined;
  const isBeyondGates = rows.some((row) => ["missed", "warned"].includes(classifyOutcome(row)));
  return isAllowed && isCompared && isBeyondGates && !isAccepted && !request.dryRun;
}
