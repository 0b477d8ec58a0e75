import { letterOf } from "./name-jobs.ts";
import { describeBasis, type MeasuredJob } from "../shared/accuracy-basis.ts";

/**
 * In which ways the accuracy of jobs was measured, each with the letters of its jobs; figures of
 * several ways say nothing of each other.
 */
export function listAccuracyWays(jobs: readonly MeasuredJob[]): string[] {
  const ways = Map.groupBy(jobs.entries(), ([, job]) => job.accuracyBasis);
  return [...ways].flatMap(([basis, members]) =>
    basis === undefined
      ? []
      : `${members.map(([index]) => letterOf(index)).join(", ")} ${describeBasis(basis)}`,
  );
}
