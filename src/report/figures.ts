import { formatBytes } from "../contract/format-bytes.ts";
import { gateTable } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import type { Telemetry } from "../contract/telemetry.ts";
import { code } from "./markdown.ts";

/** The figures of a job that its row shows, by the head of their column. */
export const figures: Readonly<Record<string, (telemetry: Telemetry) => string | undefined>> = {
  size: ({ size }) => size && `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)}`,
  ratio: ({ size }) => size && `${size.ratio.toFixed(2)}${size.predicted ? " (planned)" : ""}`,
  SQNR: ({ accuracy }) => accuracy && `${accuracy.sqnrDb.toFixed(1)} dB`,
  cosine: ({ accuracy }) => accuracy && accuracy.cosine.toFixed(4),
  "latency p50": ({ latency }) =>
    latency && `${latency.original.p50Ms.toFixed(2)} → ${latency.result.p50Ms.toFixed(2)} ms`,
};

/** A gate with its limit and what was measured, such as `maxSizeRatio 0.27 ≤ 0.5`. */
export function gateText({ gate, actual, limit, passed }: Job["gates"][number]): string {
  const measured = actual === null ? "not measured" : String(Number(actual.toPrecision(4)));
  const relation = gateTable[gate].bound === "max" ? (passed ? "≤" : ">") : passed ? "≥" : "<";
  return actual === null ? `${gate} ${measured}` : `${gate} ${measured} ${relation} ${limit}`;
}

/** Why a job did not pass, on one line; the empty text where it did. */
export function troubleOf({ error, gates }: Pick<Job, "error" | "gates">): string {
  if (error) return `${error.code}: ${code(error.message)}`;
  return gates
    .filter(({ passed }) => !passed)
    .map(gateText)
    .join(", ");
}
