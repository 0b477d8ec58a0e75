// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */

/**
 * The float32 just below one half: added to a number that is not negative, and the fraction cut
 * off, it rounds halves up and nothing less than a half.
 */
export const belowHalf: f32 = 0.49999997;

function highHalf(lanes: v128): v128 {
  return i64x2.shuffle(lanes, lanes, 1, 1);
}

function addSum(at: usize, lanes: v128, low: v128, high: v128): void {
  const first = f64x2.mul(f64x2.promote_low_f32x4(lanes), low);
  const second = f64x2.mul(f64x2.promote_low_f32x4(highHalf(lanes)), high);
  v128.store(at, f64x2.add(v128.load(at), f64x2.add(first, second)));
}

/**
 * Adds sums of squares and products, in units of each lane's scale, to the totals at `sums`: three
 * pairs of float64 (signal, noise, value times error), then four float32 (largest error).
 */
export function addSums(
  sums: usize,
  scale: v128,
  signal: v128,
  noise: v128,
  product: v128,
  worst: v128,
): void {
  let low = f64x2.promote_low_f32x4(scale);
  let high = f64x2.promote_low_f32x4(highHalf(scale));
  low = f64x2.mul(low, low);
  high = f64x2.mul(high, high);
  addSum(sums, signal, low, high);
  addSum(sums + 16, noise, low, high);
  addSum(sums + 32, product, low, high);
  v128.store(sums + 48, f32x4.pmax(v128.load(sums + 48), f32x4.mul(worst, f32x4.abs(scale))));
}
