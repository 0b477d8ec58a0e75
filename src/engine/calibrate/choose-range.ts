import type { RangeMethod } from "../../contract/jobs/recipe.ts";
import type { ActivationRange } from "../quantize/plan-revision.ts";
import type { ValueHistogram } from "./value-histogram.ts";

/** The range that a value is rounded in: what lies outside gets the code of the nearest end. */
export function chooseRange(histogram: ValueHistogram, method: RangeMethod): ActivationRange {
  const { low, high } = histogram;
  // What is not finite is no range, and the weights beside it stay as they are.
  if (!Number.isFinite(low) || !Number.isFinite(high) || low === high) return { low, high };
  switch (method) {
    case "minmax":
      return { low, high };
    case "percentile":
      return clip(histogram, {
        low: histogram.quantile(tail),
        high: histogram.quantile(1 - tail),
      });
    case "entropy": {
      const limit = minimizeDivergence(histogram);
      return clip(histogram, { low: -limit, high: limit });
    }
    case "mse":
      return minimizeSquares(histogram);
  }
}

function clip({ low, high }: ValueHistogram, range: ActivationRange): ActivationRange {
  return { low: Math.max(low, range.low), high: Math.min(high, range.high) };
}

/** Share of the values that a percentile cuts off at each end. */
const tail = 1e-5;

/** Levels of a sign that the divergence is taken with, as TensorRT does for int8. */
const levels = 128;

/**
 * The bound, sign aside, whose rounded values tell least from all values: 8-bit Inference with
 * TensorRT, S. Migacz, GTC 2017. What lies outside counts as the outermost bin, and the codes of a
 * level are spread over its bins that are not empty. Values in no more bins than there are levels
 * say nothing of others: their largest is the bound, which the definition has at their least, where
 * all are one bin.
 */
export function minimizeDivergence(histogram: ValueHistogram): number {
  const counts = histogram.magnitudes();
  const filled = counts.reduce((count, each) => count + Number(each > 0), 0);
  if (filled <= levels) return counts.length * histogram.width;
  let best = { bins: counts.length, divergence: Infinity };
  let outside = counts.slice(levels).reduce((sum, count) => sum + count, 0);
  for (let bins = levels; bins <= counts.length; bins++) {
    const divergence = divergenceOf(counts.subarray(0, bins), outside);
    if (divergence < best.divergence) best = { bins, divergence };
    outside -= counts[bins] ?? 0;
  }
  return best.bins * histogram.width;
}

/** Kullback-Leibler divergence of what is left of the values from what levels make of them. */
function divergenceOf(counts: Float64Array, outside: number): number {
  const last = counts.length - 1;
  const inside = counts.reduce((sum, count) => sum + count, 0);
  const total = inside + outside;
  let divergence = 0;
  for (let level = 0; level < levels; level++) {
    const first = Math.floor((level * counts.length) / levels);
    const end = Math.floor(((level + 1) * counts.length) / levels);
    const members = counts.subarray(first, end);
    const filled = members.reduce((count, each) => count + Number(each > 0), 0);
    const mean = members.reduce((sum, each) => sum + each, 0) / filled;
    for (const [index, count] of members.entries()) {
      const reference = count + (first + index === last ? outside : 0);
      if (reference === 0) continue;
      // Values outside of an empty bin have no code that stands for them.
      if (count === 0) return Infinity;
      divergence += (reference / total) * Math.log((reference * inside) / (mean * total));
    }
  }
  return divergence;
}

/** Parts of an end of the range that are tried. */
const steps = 40;

/** The range with the least squares of errors, by rounding inside and by clipping outside. */
function minimizeSquares(histogram: ValueHistogram): ActivationRange {
  const { low, high } = histogram;
  const parts = Array.from({ length: steps }, (_, step) => 1 - step / steps);
  const best = (ranges: readonly ActivationRange[]) =>
    ranges
      .map((range) => ({ range, squares: squaresOf(histogram, range) }))
      .reduce((a, b) => (b.squares < a.squares ? b : a)).range;
  const { high: end } = best(parts.map((part) => ({ low, high: high > 0 ? high * part : high })));
  return best(parts.map((part) => ({ low: low < 0 ? low * part : low, high: end })));
}

function squaresOf(histogram: ValueHistogram, range: ActivationRange): number {
  const [low, high] = [Math.min(0, range.low), Math.max(0, range.high)];
  const rounding = ((high - low) / 255) ** 2 / 12;
  let squares = 0;
  for (const [bin, count] of histogram.counts.entries()) {
    if (count === 0) continue;
    const value = histogram.center(bin);
    const outside = Math.max(low - value, value - high, 0);
    squares += count * Math.max(outside ** 2, rounding);
  }
  return squares;
}
