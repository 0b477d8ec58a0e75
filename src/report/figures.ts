import { formatChange, formatDecibels, formatPercent } from "./format-figure.ts";
import { latencyObstacle, sqnrObstacle } from "../contract/jobs/comparability.ts";
import { type GateName, gateTable } from "../contract/jobs/gate-table.ts";
import type { Job } from "../contract/jobs/job.ts";
import { formatRatio } from "../contract/jobs/latency.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";

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

interface GateFormats {
  readonly figure: (value: number) => string;
  readonly baseline?: (value: number) => string;
}

/** How the figures of gates are written that are not plain numbers. */
const gateFormats: Partial<Record<GateName, GateFormats>> = {
  minSqnrDb: { figure: formatDecibels },
  minTop1: { figure: formatPercent },
  maxSizeRegression: { figure: formatPercent, baseline: formatBytes },
  maxSqnrDropDb: { figure: formatDecibels, baseline: formatDecibels },
  maxLatencyRegression: { figure: formatPercent, baseline: (ms) => `${ms.toFixed(2)} ms` },
};

const plainFormats: Required<GateFormats> = { figure: formatPlain, baseline: formatPlain };

/** A gate with its limit and what was measured, such as `maxSizeRatio 0.27 ≤ 0.5`. */
export function describeGate(result: Job["gates"][number]): string {
  const formats = { ...plainFormats, ...gateFormats[result.gate] };
  const baseline =
    result.baseline === null ? "" : `, baseline ${formats.baseline(result.baseline)}`;
  const note = result.note === undefined ? "" : ` (${result.note})`;
  return `${result.gate} ${describeMeasured(result, formats.figure)}${baseline}${note}`;
}

function describeMeasured(
  { gate, actual, limit, passed, note }: Job["gates"][number],
  format: GateFormats["figure"],
): string {
  if (actual === null) return note === undefined ? "not measured" : "not comparable";
  const upper = actual > limit ? ">" : "≤";
  const lower = passed ? "≥" : "<";
  const relation = gateTable[gate].bound === "max" ? upper : lower;
  return `${format(actual)} ${relation} ${format(limit)}`;
}

function formatPlain(value: number): string {
  return String(Number(value.toPrecision(4)));
}

type MeasuredJob = Pick<Job, "telemetry" | "baseline">;

/** The baseline's accuracy, where it was measured in the same way. */
export function comparableAccuracy({ telemetry, baseline }: MeasuredJob) {
  const isComparable = baseline && sqnrObstacle(telemetry, baseline) === undefined;
  return isComparable ? baseline.accuracy : undefined;
}

/** The latency of the baseline's result, where it was measured on the same hardware. */
export function comparableLatency({ telemetry, baseline }: MeasuredJob) {
  const isComparable = baseline && latencyObstacle(telemetry, baseline) === undefined;
  return isComparable ? baseline.latency?.result : undefined;
}
