import type { BatchRequest } from "../contract/batch.ts";
import type { Records } from "../records/open-records.ts";
import type { NewReport, ReportRecord } from "../records/insert-report.ts";
import { isRerunnable } from "./check-run-actions.ts";
import { loadReportRows } from "./load-report-rows.ts";

/** Submits a batch whose jobs take the place of others in a report. */
export type SubmitRerun = (
  project: string,
  order: { request: BatchRequest; report: NewReport },
) => Promise<void>;

interface RerunDependencies {
  readonly records: Records;
  readonly submit: SubmitRerun;
}

/** A model for a target that is submitted anew. */
interface ReportPosition {
  /** Among the report's jobs. */
  readonly position: number;
  readonly model: BatchRequest["models"][number];
  readonly target: string;
}

/** Submits those jobs of a report anew that did not pass, and gives their number. */
export async function rerunJobs(
  report: ReportRecord,
  { records, submit }: RerunDependencies,
): Promise<number> {
  const { request, project } = report;
  const rows = await loadReportRows(records, report);
  const pairs = request.models
    .flatMap((model) => request.targets.map((target) => ({ model, target })))
    .map((pair, position): ReportPosition => ({ ...pair, position }))
    .filter(({ position }) => {
      const row = rows[position];
      return row !== undefined && isRerunnable(row);
    });
  for (const group of splitIntoBatches(pairs)) {
    const models = [...new Set(group.map(({ model }) => model))];
    const targets = [...new Set(group.map(({ target }) => target))];
    const positions = group.map(({ position }) => position);
    await submit(project, {
      request: { ...request, models, targets },
      report: { repeats: report.id, round: report.round + 1, positions },
    });
  }
  return pairs.length;
}

/** A batch has each of its models for each of its targets, so that models with the same targets left share one. */
function splitIntoBatches(pairs: readonly ReportPosition[]): ReportPosition[][] {
  const byModel = [...Map.groupBy(pairs, ({ model }) => model).values()];
  const groups = Map.groupBy(byModel, (ofModel) => ofModel.map(({ target }) => target).join(" "));
  return [...groups.values()].map((group) => group.flat());
}
