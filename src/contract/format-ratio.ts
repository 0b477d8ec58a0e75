import type { LatencyRatio } from "./latency.ts";

/** A ratio of latencies with its confidence interval, for people: `0.98 (0.97-1.00)`. */
export function formatRatio({
  ratio,
  ratioLow,
  ratioHigh,
}: Omit<LatencyRatio, "sessions">): string {
  const text = ratio.toFixed(2);
  if (ratioLow === undefined || ratioHigh === undefined) return text;
  return `${text} (${ratioLow.toFixed(2)}-${ratioHigh.toFixed(2)})`;
}
