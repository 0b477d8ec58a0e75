import type { LatencyRatio } from "../../contract/jobs/latency.ts";

export type Judgement = "better" | "worse" | "same";

/** Figures without an interval differ by so much though nothing changed. */
const noise = 0.03;

/**
 * The one rule for colours: a ratio is better or worse where its whole interval is on that side of
 * 1, which is what it is compared with: the original or the baseline's result.
 */
export function judgeRatio({ ratio, ratioLow, ratioHigh }: LatencyRatio): Judgement {
  const [low, high] = [ratioLow ?? ratio * (1 - noise), ratioHigh ?? ratio * (1 + noise)];
  if (high < 1) return "better";
  return low > 1 ? "worse" : "same";
}
