import { sqnrObstacle } from "../contract/jobs/comparability.ts";
import { figureNames } from "../contract/jobs/figure-names.ts";
import type { Job } from "../contract/jobs/job.ts";
import { explainWideInterval, formatRatio, type LatencyRatio } from "../contract/jobs/latency.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatChange, formatDecibels, formatPercent } from "../contract/text/format-figure.ts";

type MeasuredJob = Pick<Job, "telemetry" | "baseline">;
type FormatFigure = (job: MeasuredJob) => string | undefined;

/** The figures of a job with their change since the baseline, by the heads of their columns. */
export const figures: Readonly<Record<string, FormatFigure>> = {
  [figureNames.size]: ({ telemetry: { size }, baseline }) => {
    if (!size) return undefined;
    const before = baseline?.size;
    const change = before && formatChange(size.resultBytes / before.resultBytes - 1, formatPercent);
    const sizes = `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)}`;
    const share = `${formatPercent(size.ratio, 0)}${size.predicted ? ", planned" : ""}`;
    return withChange(`${sizes} (${share})`, change);
  },
  [figureNames.accuracy]: (job) => {
    const { accuracy } = job.telemetry;
    if (!accuracy) return undefined;
    const before = comparableAccuracy(job);
    const change = before && formatChange(accuracy.sqnrDb - before.sqnrDb, formatDecibels);
    return withChange(formatDecibels(accuracy.sqnrDb), change);
  },
  [figureNames.latency]: ({ telemetry: { latency } }) =>
    latency && withChange(formatRatio(latency), describeLatencyChange(latency.baseline)),
};

function withChange(figure: string, change: string | undefined): string {
  return change === undefined ? figure : `${figure} ${change}`;
}

/** The ratio of latencies, where its interval says something. */
export function knownRatio(latency: LatencyRatio | undefined): number | undefined {
  return latency && explainWideInterval(latency) === undefined ? latency.ratio : undefined;
}

/** What stands in place of a baseline's latency that this run did not measure. */
export const notTimed = "not timed in this run";

/**
 * The change of a latency with its interval. There is one only where the baseline's result was
 * timed in the same run: other runs are of another hour, and of another machine.
 */
export function describeLatencyChange(measured: LatencyRatio | undefined): string | undefined {
  if (measured === undefined) return undefined;
  const { ratio, ratioLow = ratio, ratioHigh = ratio } = measured;
  const reason = explainWideInterval(measured);
  if (reason !== undefined) return `(against the baseline ${reason})`;
  const isKnown = ratioLow > 1 || ratioHigh < 1;
  const change = isKnown ? formatChange(ratio - 1, formatPercent) : "=";
  return `${change} (${formatPercent(ratioLow - 1)} to ${formatPercent(ratioHigh - 1)})`;
}

/** The baseline's accuracy, where it was measured in the same way. */
export function comparableAccuracy({ telemetry, baseline }: MeasuredJob) {
  const isComparable = baseline && sqnrObstacle(telemetry, baseline) === undefined;
  return isComparable ? baseline.accuracy : undefined;
}
