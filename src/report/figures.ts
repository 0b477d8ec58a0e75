import { latencyObstacle, sqnrObstacle } from "../contract/comparability.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import { type GateName, gateTable } from "../contract/gate-table.ts";
import type { Job } from "../contract/job.ts";

type MeasuredJob = Pick<Job, "telemetry" | "baseline">;

/** The figures of a job that its row shows, by the head of their column, with their change since the baseline. */
export const figures: Readonly<Record<string, (job: MeasuredJob) => string | undefined>> = {
  size({ telemetry: { size }, baseline }) {
    if (!size) return undefined;
    const change =
      baseline?.size &&
      formatChange(size.resultBytes / baseline.size.resultBytes - 1, formatPercent);
    return withChange(
      `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)}`,
      change,
    );
  },
  ratio: ({ telemetry: { size } }) =>
    size && `${size.ratio.toFixed(2)}${size.predicted ? " (planned)" : ""}`,
  SQNR(job) {
    const { accuracy } = job.telemetry;
    const before = comparableAccuracy(job);
    return (
      accuracy &&
      withChange(
        formatDecibels(accuracy.sqnrDb),
        before && formatChange(accuracy.sqnrDb - before.sqnrDb, formatDecibels),
      )
    );
  },
  cosine: ({ telemetry: { accuracy } }) => accuracy && accuracy.cosine.toFixed(4),
  "latency p50"(job) {
    const { latency } = job.telemetry;
    if (!latency) return undefined;
    const [original, result] = [latency.original.p50Ms, latency.result.p50Ms];
    const before = comparableLatency(job);
    return withChange(
      `${original.toFixed(2)} → ${result.toFixed(2)} ms`,
      before && formatChange(result / before.p50Ms - 1, formatPercent),
    );
  },
};

/** The baseline's accuracy, where it was measured in the same way. */
export function comparableAccuracy({ telemetry, baseline }: MeasuredJob) {
  return baseline && sqnrObstacle(telemetry, baseline) === undefined
    ? baseline.accuracy
    : undefined;
}

/** The latency of the baseline's result, where it was measured on the same hardware. */
export function comparableLatency({ telemetry, baseline }: MeasuredJob) {
  return baseline && latencyObstacle(telemetry, baseline) === undefined
    ? baseline.latency?.result
    : undefined;
}

function withChange(figure: string, change: string | undefined): string {
  return change === undefined ? figure : `${figure} ${change}`;
}

/** A change with its direction; `=` where it rounds to nothing. */
export function formatChange(
  change: number,
  format: (value: number) => string,
): string | undefined {
  if (!Number.isFinite(change)) return undefined;
  const text = format(Math.abs(change));
  return text === format(0) ? "=" : `${change > 0 ? "▲" : "▼"} ${text}`;
}

export function formatPercent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function formatDecibels(value: number): string {
  return `${value.toFixed(1)} dB`;
}

const formatPlain = (value: number) => String(Number(value.toPrecision(4)));

/** How figures of gates are written, where they are not plain numbers. */
const gateFormats: Partial<
  Record<GateName, { figure: (value: number) => string; baseline?: (value: number) => string }>
> = {
  minSqnrDb: { figure: formatDecibels },
  minTop1: { figure: formatPercent },
  maxSizeRegression: { figure: formatPercent, baseline: formatBytes },
  maxSqnrDropDb: { figure: formatDecibels, baseline: formatDecibels },
  maxLatencyRegression: { figure: formatPercent, baseline: (ms) => `${ms.toFixed(2)} ms` },
};

/** A gate with its limit and what was measured, such as `maxSizeRatio 0.27 ≤ 0.5`. */
export function describeGate({
  gate,
  actual,
  limit,
  passed,
  baseline,
  note,
}: Job["gates"][number]): string {
  const { figure = formatPlain, baseline: before = formatPlain } = gateFormats[gate] ?? {};
  const isAbove = actual !== null && actual > limit;
  const relation = gateTable[gate].bound === "max" ? (isAbove ? ">" : "≤") : passed ? "≥" : "<";
  const measured =
    actual === null
      ? note === undefined
        ? "not measured"
        : "not told"
      : `${figure(actual)} ${relation} ${figure(limit)}`;
  const since = baseline === null ? "" : `, baseline ${before(baseline)}`;
  return `${gate} ${measured}${since}${note === undefined ? "" : ` (${note})`}`;
}

/** Why a job did not pass, on one line; the empty text where it did. */
export function describeJobFailure({ error, gates }: Pick<Job, "error" | "gates">): string {
  if (error) return `${error.code}: ${error.message}`;
  return gates
    .filter(({ passed }) => !passed)
    .map(describeGate)
    .join(", ");
}
