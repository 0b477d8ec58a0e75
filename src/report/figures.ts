import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatRatio } from "../contract/jobs/latency.ts";
import type { Job } from "../contract/jobs/job.ts";
import { comparableAccuracy, comparableLatency } from "./comparable-figures.ts";
import { formatChange, formatDecibels, formatPercent } from "./format-figure.ts";

type FormatFigure = (job: Pick<Job, "telemetry" | "baseline">) => string | undefined;

/** The figures of a job with their change since the baseline, by the heads of their columns. */
export const figures: Readonly<Record<string, FormatFigure>> = {
  size({ telemetry: { size }, baseline }) {
    if (!size) return undefined;
    const before = baseline?.size;
    const change = before && formatChange(size.resultBytes / before.resultBytes - 1, formatPercent);
    const sizes = `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)}`;
    return withChange(sizes, change);
  },
  ratio: ({ telemetry: { size } }) =>
    size && `${size.ratio.toFixed(2)}${size.predicted ? " (planned)" : ""}`,
  SQNR(job) {
    const { accuracy } = job.telemetry;
    if (!accuracy) return undefined;
    const before = comparableAccuracy(job);
    const change = before && formatChange(accuracy.sqnrDb - before.sqnrDb, formatDecibels);
    return withChange(formatDecibels(accuracy.sqnrDb), change);
  },
  cosine: ({ telemetry: { accuracy } }) => accuracy && accuracy.cosine.toFixed(4),
  "latency p50"(job) {
    const { latency } = job.telemetry;
    if (!latency) return undefined;
    const [original, result] = [latency.original.p50Ms, latency.result.p50Ms];
    const before = comparableLatency(job);
    const change = before && formatChange(result / before.p50Ms - 1, formatPercent);
    const medians = `${original.toFixed(2)} → ${result.toFixed(2)} ms`;
    return `${withChange(medians, change)}, ratio ${formatRatio(latency)}`;
  },
};

function withChange(figure: string, change: string | undefined): string {
  return change === undefined ? figure : `${figure} ${change}`;
}
