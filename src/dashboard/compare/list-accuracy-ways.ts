import { letterOf } from "./name-jobs.ts";
import { sampleNames } from "../../contract/jobs/figure-names.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { truncate } from "../../contract/text/truncate.ts";

type MeasuredJob = Pick<Job, "recipe" | "telemetry">;

/**
 * In which ways the accuracy of jobs was measured, each with the letters of its jobs; figures of
 * several ways say nothing of each other.
 */
export function listAccuracyWays(jobs: readonly MeasuredJob[]): string[] {
  const ways = Map.groupBy(jobs.entries(), ([, job]) => describeWay(job));
  return [...ways].flatMap(([way, members]) =>
    way === undefined
      ? []
      : `${members.map(([index]) => letterOf(index)).join(", ")} ${truncate(way, 80)}`,
  );
}

function describeWay({ recipe, telemetry: { accuracy } }: MeasuredJob): string | undefined {
  if (accuracy === undefined) return undefined;
  const { level, data } = accuracy;
  if (level === "weights") return "by the worst weight";
  const source = data === "caller" ? `, ${recipe.evaluation.data}` : "";
  return `on ${sampleNames[data]}${source}`;
}
