import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { compareFigures } from "../shared/compare-figures.ts";
import {
  type BatchJob,
  describeChange,
  listMissedGates,
  lookAtJob,
  type LookName,
} from "./look-at-job.ts";

export interface ListedChange {
  readonly job: BatchJob;
  readonly look: LookName;
  readonly detail: string;
  /** Whether it has a baseline. */
  readonly isCompared: boolean;
  readonly severity: number;
}

/** Looks that are listed, the worst first. */
const listed: readonly LookName[] = ["bad", "warn", "worse", "better"];

/** Jobs that failed, miss a gate or differ from their baselines beyond noise, the worst first. */
export function listBatchChanges(
  jobs: readonly BatchJob[],
  summaries: ReadonlyMap<string, JobSummary>,
): ListedChange[] {
  const changes = jobs.flatMap((job) => {
    const { look, detail } = lookAtJob(job, summaries.get(job.id), "summary");
    const summary = summaries.get(job.id);
    if (!listed.includes(look) || summary === undefined) return [];
    return [{ job, look, ...describeJob(summary, detail) }];
  });
  return changes.toSorted(
    (a, b) => listed.indexOf(a.look) - listed.indexOf(b.look) || b.severity - a.severity,
  );
}

function describeJob(summary: JobSummary, detail: string) {
  const differing = compareFigures(summary).filter(({ judgement }) => judgement !== "same");
  const changes = differing.map((each) => {
    return `${describeChange(each)}, ${each.before} → ${each.now}`;
  });
  const texts = [...listMissedGates(summary), ...changes];
  return {
    detail: texts.length === 0 ? detail : texts.join(" · "),
    isCompared: summary.baseline !== null,
    severity: Math.max(0, ...differing.map(({ severity }) => Math.abs(severity))),
  };
}
