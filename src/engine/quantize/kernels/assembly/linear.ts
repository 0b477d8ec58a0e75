// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
import { addSums } from "./lanes";

/** 1.5 · 2^23: added to a whole number, it leaves the low byte of its two's complement. */
const signedBits: f32 = 12582912.0;

/**
 * Widens the ranges of groups of four lanes, each with `vectors` vectors of values. `low` and
 * `high` have a vector a group. `seen` gets NaN in a lane where a value is not finite.
 */
export function widenRanges(
  input: usize,
  groups: i32,
  groupStride: usize,
  vectors: i32,
  vectorStride: usize,
  low: usize,
  high: usize,
  seen: usize,
): void {
  let found = v128.load(seen);
  const none = f32x4.splat(0);
  for (let group = 0; group < groups; group++) {
    let at = input;
    let least = v128.load(low);
    let most = v128.load(high);
    for (let vector = 0; vector < vectors; vector++) {
      const value = v128.load(at);
      least = f32x4.pmin(least, value);
      most = f32x4.pmax(most, value);
      found = f32x4.add(found, f32x4.mul(value, none));
      at += vectorStride;
    }
    v128.store(low, least);
    v128.store(high, most);
    input += groupStride;
    low += 16;
    high += 16;
  }
  v128.store(seen, found);
}

/**
 * Rounds values (half to even) in the order of `widenRanges`, with a vector of scales and one of
 * zero points a group. Codes are a byte each, four a vector.
 */
export function roundLinear(
  input: usize,
  groups: i32,
  groupStride: usize,
  vectors: i32,
  vectorStride: usize,
  scales: usize,
  zeroPoints: usize,
  lowest: f32,
  highest: f32,
  codes: usize,
  sums: usize,
): void {
  const bottom = f32x4.splat(lowest);
  const top = f32x4.splat(highest);
  const signed = f32x4.splat(signedBits);
  for (let group = 0; group < groups; group++) {
    const scale = v128.load(scales);
    const zero = v128.load(zeroPoints);
    let signal = f32x4.splat(0);
    let noise = signal;
    let product = signal;
    let worst = signal;
    let at = input;
    let to = codes;
    for (let vector = 0; vector < vectors; vector++) {
      const value = f32x4.div(v128.load(at), scale);
      const code = f32x4.pmin(top, f32x4.pmax(bottom, f32x4.add(f32x4.nearest(value), zero)));
      const error = f32x4.sub(f32x4.sub(code, zero), value);
      signal = f32x4.add(signal, f32x4.mul(value, value));
      noise = f32x4.add(noise, f32x4.mul(error, error));
      product = f32x4.add(product, f32x4.mul(value, error));
      worst = f32x4.pmax(worst, f32x4.abs(error));
      const bits = f32x4.add(code, signed);
      v128.store_lane<u32>(
        to,
        i8x16.shuffle(bits, bits, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12),
        0,
      );
      at += vectorStride;
      to += vectorStride >> 2;
    }
    addSums(sums, scale, signal, noise, product, worst);
    input += groupStride;
    codes += groupStride >> 2;
    scales += 16;
    zeroPoints += 16;
  }
}
