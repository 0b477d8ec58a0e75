import { sampleNames } from "../../contract/jobs/figure-names.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";

export type MeasuredJob = Pick<JobSummary, "accuracyBasis">;

/** How an accuracy was measured, such as `on generated samples`. */
export function describeBasis(basis: string): string {
  if (basis === "weights") return "by the worst weight";
  const [data = "", sha256] = basis.split("-");
  const names: Readonly<Record<string, string>> = sampleNames;
  return `on ${names[data] ?? data}${sha256 === undefined ? "" : ` (SHA-256 ${sha256}…)`}`;
}

/** Jobs whose accuracy can be compared, the largest group first; those without one come last. */
export function groupByBasis<Job extends MeasuredJob>(jobs: readonly Job[]): (readonly Job[])[] {
  const groups = Map.groupBy(jobs, ({ accuracyBasis }) => accuracyBasis);
  const rank = ([basis, { length }]: [string | undefined, readonly Job[]]) =>
    basis === undefined ? -1 : length;
  return [...groups].toSorted((a, b) => rank(b) - rank(a)).map(([, group]) => group);
}
