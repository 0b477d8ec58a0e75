import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import type { LatencyRatio } from "../../contract/jobs/latency.ts";

type SummarizedRatio = Pick<
  JobSummary["figures"],
  "latencyRatio" | "latencyRatioLow" | "latencyRatioHigh"
>;

/** Undefined where it was not measured. */
export function toLatencyRatio({
  latencyRatio: ratio,
  latencyRatioLow: ratioLow,
  latencyRatioHigh: ratioHigh,
}: SummarizedRatio): LatencyRatio | undefined {
  if (ratio === null) return undefined;
  return { ratio, ratioLow: ratioLow ?? undefined, ratioHigh: ratioHigh ?? undefined };
}
