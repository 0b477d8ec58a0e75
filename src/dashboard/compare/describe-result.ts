import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels, formatTimes } from "../../contract/text/format-figure.ts";
import { judgeJob } from "../shared/verdict.ts";

/** A job's figures in a line: `711 kB (31 %), 7.4 dB, ×1.00; Completed, fails 1 gate`. */
export function describeResult(job: JobSummary): string {
  const { resultBytes, sizeRatio, sqnrDb, latencyRatio } = job.figures;
  const share = sizeRatio === null ? "" : ` (${Math.round(100 * sizeRatio)} %)`;
  const figures = [
    resultBytes === null ? [] : `${formatBytes(resultBytes)}${share}`,
    sqnrDb === null ? [] : formatDecibels(sqnrDb),
    latencyRatio === null ? [] : formatTimes(latencyRatio),
  ].flat();
  return [figures.join(", "), judgeJob(job).words].filter((part) => part !== "").join("; ");
}
