import type { BatchRequest } from "../contract/batch.ts";
import { groupByTargets } from "../contract/group-by-targets.ts";
import type { Owner } from "../contract/owner.ts";
import type { AuditedChange } from "../records/add-audit-entry.ts";
import type { Records } from "../records/open-records.ts";
import type { NewReport, ReportRecord } from "../records/insert-report.ts";
import { isRerunnable } from "./check-run-actions.ts";
import { loadReportRows } from "./load-report-rows.ts";

/** Submits a batch whose jobs replace others in a report. */
export type SubmitRerun = (
  owner: Owner,
  order: { request: BatchRequest; report: NewReport; audit: AuditedChange },
) => Promise<void>;

interface RerunDependencies {
  readonly records: Records;
  /** Address of the service for links, with `/v1`. */
  readonly publicUrl: string;
  readonly submit: SubmitRerun;
  readonly audit: AuditedChange;
}

/** Submits the jobs of a report again that did not pass, and gives their number. */
export async function rerunJobs(
  report: ReportRecord,
  { records, publicUrl, submit, audit }: RerunDependencies,
): Promise<number> {
  const { request } = report;
  const owner = await records.owners.findOfBatch(report.id);
  if (owner === undefined) return 0;
  // Jobs that were deleted have no row.
  const rows = new Map(
    (await loadReportRows(records, report, publicUrl)).map((row) => [row.id, row]),
  );
  const pairs = request.models
    .flatMap((model) => request.targets.map((target) => ({ model, target })))
    .map((pair, position) => ({ ...pair, position, row: rows.get(report.jobIds[position] ?? "") }))
    .filter(({ row }) => row !== undefined && isRerunnable(row));
  for (const { models, targets, pairs: group } of groupByTargets(pairs)) {
    const positions = group.map(({ position }) => position);
    await submit(owner, {
      request: { ...request, models, targets },
      report: { repeats: report.id, round: report.round + 1, positions },
      audit,
    });
  }
  return pairs.length;
}
