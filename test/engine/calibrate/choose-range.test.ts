import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseRange, minimizeDivergence } from "../../../src/engine/calibrate/choose-range.ts";
import { ValueHistogram } from "../../../src/engine/calibrate/value-histogram.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";

const normal = createNormal(createRandom(3));
const values = Float32Array.from({ length: 200_000 }, normal);
const withOutliers = Float32Array.of(...values.subarray(0, 50_000), 40, -25);

function count(...parts: readonly Float32Array[]): ValueHistogram {
  const histogram = new ValueHistogram();
  for (const part of parts) histogram.add(part);
  return histogram;
}

test("a histogram is the same for any order of values, and does not grow", () => {
  const forwards = count(Float32Array.of(1e-6), values, Float32Array.of(1000));
  const backwards = count(Float32Array.of(1000), values.toReversed(), Float32Array.of(1e-6));
  assert.deepEqual(forwards.counts, backwards.counts);
  assert.equal(forwards.width, backwards.width);
  assert.equal(forwards.counts.length, new ValueHistogram().counts.length);
  assert.equal(
    forwards.counts.reduce((sum, each) => sum + each, 0),
    200_002,
  );
});

test("a percentile, entropy and squares leave out outliers, and min-max does not", () => {
  const histogram = count(withOutliers);
  const range = (method: Parameters<typeof chooseRange>[1]) => chooseRange(histogram, method);
  assert.deepEqual(range("minmax"), { low: -25, high: 40 });
  const [entropy, mse] = [range("entropy"), range("mse")];
  assert.ok(entropy.high < 20 && entropy.high > 2.5, `${entropy.high}`);
  // One value of 40 has a square that the others gain little by.
  assert.ok(mse.high < 40 && mse.high > entropy.high, `${mse.high}`);
  assert.ok(mse.low > -25 && mse.low < entropy.low, `${mse.low}`);
  const percentile = chooseRange(count(values, Float32Array.of(40)), "percentile");
  assert.ok(percentile.high > 4 && percentile.high < 6, `${percentile.high}`);
});

test("a bound by entropy is the one of the definition that TensorRT published", () => {
  const histogram = count(withOutliers);
  const counts = histogram.magnitudes();
  assert.equal(minimizeDivergence(histogram), publishedBins(counts) * histogram.width);
});

test("a bound by entropy leaves out none of a few different values", () => {
  const few = count(Float32Array.of(-0.3, 0.2, 0.7, 1.5), new Float32Array(100).fill(0.2));
  assert.deepEqual(chooseRange(few, "entropy"), chooseRange(few, "minmax"));
});

/** S. Migacz, 8-bit Inference with TensorRT, GTC 2017, page 38, written as it stands there. */
function publishedBins(bins: Float64Array): number {
  let best = { bins: 0, divergence: Infinity };
  for (let i = 128; i <= bins.length; i++) {
    const reference = Array.from(bins.subarray(0, i));
    const outliers = bins.slice(i).reduce((sum, each) => sum + each, 0);
    reference[i - 1] = (reference[i - 1] ?? 0) + outliers;
    const candidate = Array.from({ length: i }, () => 0);
    for (let level = 0; level < 128; level++) {
      const start = Math.floor((level * i) / 128);
      const end = Math.floor(((level + 1) * i) / 128);
      const filled = bins.slice(start, end).filter((each) => each > 0);
      const mean = filled.reduce((sum, each) => sum + each, 0) / filled.length;
      for (let bin = start; bin < end; bin++) candidate[bin] = (bins[bin] ?? 0) > 0 ? mean : 0;
    }
    const [p, q] = [normalize(reference), normalize(candidate)];
    const terms = p.map((each, bin) => (each === 0 ? 0 : each * Math.log(each / (q[bin] ?? 0))));
    const divergence = terms.reduce((sum, each) => sum + each, 0);
    if (divergence < best.divergence) best = { bins: i, divergence };
  }
  return best.bins;
}

function normalize(counts: readonly number[]): number[] {
  const total = counts.reduce((sum, each) => sum + each, 0);
  return counts.map((each) => each / total);
}

test("values that are not finite have no range", () => {
  assert.ok(Number.isNaN(chooseRange(count(Float32Array.of(1, NaN, 2)), "mse").high));
  assert.equal(chooseRange(count(Float32Array.of(1, Infinity)), "entropy").high, Infinity);
});
