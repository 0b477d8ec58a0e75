import { formatRatio, type LatencyRatio } from "../../contract/jobs/latency.ts";
import { judgeRatio } from "./judge-ratio.ts";

/** Ratios at the ends of the small scale; the original, 1, is in its middle. */
const [least, most] = [0.4, 1.6];

/** A ratio with its interval on a small scale, whose mark is the original. */
export function LatencyMark({ latency }: { readonly latency: LatencyRatio }) {
  const { ratio, ratioLow = ratio, ratioHigh = ratio } = latency;
  const judgement = judgeRatio(latency);
  const [low, high] = [toPercent(ratioLow), toPercent(ratioHigh)];
  return (
    <span class={`latency ${judgement}`} title={`${formatRatio(latency)}, ${judgement}`}>
      <span class="latency-scale" aria-hidden="true">
        <span class="latency-original" />
        <span class="latency-range" style={{ left: `${low}%`, width: `${high - low}%` }} />
        <span class="latency-dot" style={{ left: `${toPercent(ratio)}%` }} />
      </span>
      ×{ratio.toFixed(2)}
    </span>
  );
}

function toPercent(ratio: number): number {
  return (100 * (Math.min(most, Math.max(least, ratio)) - least)) / (most - least);
}
