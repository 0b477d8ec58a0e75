import { letterOf } from "./name-jobs.ts";
import { sampleNames } from "../../contract/jobs/figure-names.ts";
import type { Job } from "../../contract/jobs/job.ts";

/**
 * In which ways the accuracy of jobs was measured, each with the letters of its jobs; figures of
 * several ways say nothing of each other.
 */
export function listAccuracyWays(jobs: readonly Pick<Job, "telemetry">[]): string[] {
  const ways = Map.groupBy(jobs.keys(), (index) => describeWay(jobs[index]?.telemetry.accuracy));
  return [...ways].flatMap(([way, members]) =>
    way === undefined ? [] : `${members.map(letterOf).join(", ")} ${way}`,
  );
}

function describeWay(accuracy: Job["telemetry"]["accuracy"]): string | undefined {
  if (accuracy === undefined) return undefined;
  return accuracy.level === "weights" ? "by the worst weight" : `on ${sampleNames[accuracy.data]}`;
}
