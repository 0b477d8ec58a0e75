import { explainWideInterval } from "./explain-wide-interval.ts";
import type { LatencyRatio } from "./latency.ts";

/**
 * A ratio of latencies with its confidence interval, for people: `0.98 (0.97-1.00)`, or why the
 * interval says nothing.
 */
export function formatRatio(latency: LatencyRatio): string {
  const { ratio, ratioLow, ratioHigh } = latency;
  const text = ratio.toFixed(2);
  if (ratioLow === undefined || ratioHigh === undefined) return text;
  const range = `${ratioLow.toFixed(2)}-${ratioHigh.toFixed(2)}`;
  return `${text} (${explainWideInterval(latency) ?? range})`;
}
