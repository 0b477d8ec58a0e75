import { formatBytes } from "../contract/text/format-bytes.ts";
import { type GateName, gateTable } from "../contract/jobs/gate-table.ts";
import type { Job } from "../contract/jobs/job.ts";
import { formatDecibels, formatPercent } from "./format-figure.ts";

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
