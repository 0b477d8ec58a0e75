import type { LatencyRatio } from "./latency.ts";

/** An interval whose ends differ by a larger factor leaves open half the ratio and the double. */
const widestFactor = 4;

/**
 * What people read in place of an interval that says nothing, such as `timed in 2 sessions: too few
 * for an interval`; undefined for one that says something, and where there is none.
 */
export function explainWideInterval({
  ratioLow = 1,
  ratioHigh = 1,
  sessions,
}: Omit<LatencyRatio, "ratio">): string | undefined {
  if (ratioHigh <= widestFactor * ratioLow) return undefined;
  return sessions === undefined
    ? "timed in too few sessions for an interval"
    : `timed in ${sessions} sessions: too few for an interval`;
}
