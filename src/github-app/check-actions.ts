import { outcomeOf } from "../report/outcome.ts";
import type { ReportRow } from "../report/report.ts";
import type { ReportRecord } from "../records/report-record.ts";
import type { CheckAction } from "./check-runs.ts";

export const rerun: CheckAction = {
  identifier: "rerun",
  label: "Re-run",
  description: "Submit the jobs anew that did not pass",
};

export const acceptBaseline: CheckAction = {
  identifier: "accept-baseline",
  label: "Accept as baseline",
  description: "Compare later results with these",
};

/** Whether the job is one that a re-run submits anew. */
export function isToRepeat(row: ReportRow): boolean {
  return ["failed", "missed", "cancelled"].includes(outcomeOf(row));
}

/** The buttons of a check run that is completed. */
export function actionsOf({ request, isAccepted }: ReportRecord, rows: readonly ReportRow[]): CheckAction[] {
  const isCompared = request.suite !== undefined && request.revision !== undefined;
  const isBeyond = rows.some((row) => ["missed", "warned"].includes(outcomeOf(row)));
  return [
    ...(rows.some(isToRepeat) ? [rerun] : []),
    ...(isCompared && isBeyond && !isAccepted && !request.dryRun ? [acceptBaseline] : []),
  ];
}
