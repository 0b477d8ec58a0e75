import { at } from "../onnx/at.ts";

/** Bins of a histogram: an even number, half of them for values below 0. */
const binCount = 4096;
const middle = binCount / 2;

/**
 * Counts values in bins of equal width around 0. The bins become twice as wide, in pairs, where a
 * value lies outside, so that memory does not grow and the order of values does not matter.
 */
export class ValueHistogram {
  readonly counts = new Float64Array(binCount);
  /** The least and the largest value; NaN after a value that is not a number. */
  low = Infinity;
  high = -Infinity;
  /** A power of two. */
  width = 2 ** -40;

  add(values: ArrayLike<number>): void {
    for (let index = 0; index < values.length; index++) {
      const number = at(values, index);
      // A value that is not a number leaves neither as a number.
      this.low = Math.min(this.low, number);
      this.high = Math.max(this.high, number);
    }
    if (!Number.isFinite(this.low) || !Number.isFinite(this.high)) return;
    while (Math.max(-this.low, this.high) >= this.width * middle) this.#widen();
    const { counts, width } = this;
    for (let index = 0; index < values.length; index++) {
      const bin = middle + Math.floor(at(values, index) / width);
      counts[bin] = at(counts, bin) + 1;
    }
  }

  /** Values that were counted. */
  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** The value that a share of all values lie below, to the width of a bin. */
  quantile(share: number): number {
    let rest = share * this.count;
    for (const [bin, count] of this.counts.entries()) {
      if (count > rest) return this.center(bin);
      rest -= count;
    }
    return this.high;
  }

  /** Counts by size, sign aside, up to the largest. */
  magnitudes(): Float64Array {
    const sums = this.counts
      .slice(middle)
      .map((count, bin) => count + at(this.counts, middle - 1 - bin));
    return sums.slice(0, sums.findLastIndex((sum) => sum > 0) + 1);
  }

  /** Middle of a bin. */
  center(bin: number): number {
    return (bin - middle + 0.5) * this.width;
  }

  #widen(): void {
    const merged = new Float64Array(binCount);
    for (const [bin, count] of this.counts.entries()) {
      const wider = middle + Math.floor((bin - middle) / 2);
      merged[wider] = at(merged, wider) + count;
    }
    this.counts.set(merged);
    this.width *= 2;
  }
}
