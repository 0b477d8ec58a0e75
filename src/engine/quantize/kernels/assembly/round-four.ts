// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
import { addSums, belowHalf } from "./lanes";

/** 2^23: added to a smaller whole number, it leaves the number in the low bits. */
const wholeBits: f32 = 8388608.0;
const wholePattern: i32 = 0x4b000000;

function storeLanes(at: usize, step: usize, lanes: v128): void {
  v128.store_lane<u32>(at, lanes, 0);
  v128.store_lane<u32>(at + step, lanes, 1);
  v128.store_lane<u32>(at + 2 * step, lanes, 2);
  v128.store_lane<u32>(at + 3 * step, lanes, 3);
}

function storeBytes(at: usize, step: usize, lanes: v128): void {
  v128.store_lane<u8>(at, lanes, 0);
  v128.store_lane<u8>(at + step, lanes, 4);
  v128.store_lane<u8>(at + 2 * step, lanes, 8);
  v128.store_lane<u8>(at + 3 * step, lanes, 12);
}

/** Four lanes of zeros, NaN where a lane has a value that is not finite. */
function poison(input: usize, stride: usize, rows: i32): v128 {
  let found = f32x4.splat(0);
  for (let row = 0; row < rows; row++) {
    found = f32x4.add(found, f32x4.mul(v128.load(input), f32x4.splat(0)));
    input += stride;
  }
  return found;
}

/** Squares of how far the values of four blocks are from a grid of so many steps, in steps. */
function distances(
  input: usize,
  stride: usize,
  rows: i32,
  low: v128,
  high: v128,
  steps: v128,
): v128 {
  const reciprocal = f32x4.div(steps, f32x4.sub(high, low));
  let sum = f32x4.splat(0);
  for (let row = 0; row < rows; row++) {
    const value = f32x4.mul(f32x4.sub(v128.load(input), low), reciprocal);
    const distance = f32x4.sub(value, f32x4.nearest(value));
    sum = f32x4.add(sum, f32x4.mul(distance, distance));
    input += stride;
  }
  return f32x4.div(sum, f32x4.mul(steps, steps));
}

/**
 * Rounds four blocks side by side, one a lane, as MLAS does (onnxruntime core/mlas/lib/q4_dq.cpp).
 * `mode` is 1 for symmetric codes, 0 for a zero point, and 2 for one where a block may do without the
 * last code, if its values are nearer to such a grid. `step` counts the blocks from one lane's place
 * in the output to the next.
 */
export function roundFour(
  bits: i32,
  mode: i32,
  input: usize,
  stride: usize,
  rows: i32,
  codes: usize,
  blobBytes: usize,
  scales: usize,
  zeroPoints: usize,
  step: usize,
  sums: usize,
): void {
  let low = v128.load(input);
  let high = low;
  let at = input + stride;
  for (let row = 1; row < rows; row++) {
    const value = v128.load(at);
    low = f32x4.pmin(low, value);
    high = f32x4.pmax(high, value);
    at += stride;
  }
  const top = f32x4.splat(<f32>((1 << bits) - 1));
  const none = f32x4.splat(0);
  const half = f32x4.splat(belowHalf);
  let scale: v128;
  let zero: v128;
  if (mode === 1) {
    const larger = v128.bitselect(high, low, f32x4.gt(f32x4.abs(high), f32x4.abs(low)));
    scale = f32x4.div(larger, f32x4.splat(-(<f32>(1 << (bits - 1)))));
    zero = f32x4.splat(<f32>(1 << (bits - 1)));
  } else {
    low = f32x4.pmin(none, low);
    high = f32x4.pmax(none, high);
    let steps = top;
    if (mode === 2) {
      const fewer = f32x4.sub(top, f32x4.splat(1));
      const isNearer = f32x4.lt(
        distances(input, stride, rows, low, high, fewer),
        distances(input, stride, rows, low, high, top),
      );
      steps = v128.bitselect(fewer, top, isNearer);
    }
    scale = f32x4.div(f32x4.sub(high, low), steps);
    const point = f32x4.pmin(top, f32x4.pmax(none, f32x4.div(f32x4.neg(low), scale)));
    zero = v128.and(f32x4.trunc(f32x4.add(point, half)), f32x4.ne(scale, none));
  }
  const reciprocal = v128.and(f32x4.div(f32x4.splat(1), scale), f32x4.ne(scale, none));
  storeLanes(scales, 4 * step, scale);
  storeBytes(zeroPoints, step, i32x4.trunc_sat_f32x4_s(zero));

  roundValues(bits, input, stride, rows, codes, blobBytes, step, sums, scale, zero, reciprocal);
}

/** Rounds the values of four blocks and adds their errors to `sums`. */
function roundValues(
  bits: i32,
  input: usize,
  stride: usize,
  rows: i32,
  codes: usize,
  blobBytes: usize,
  step: usize,
  sums: usize,
  scale: v128,
  zero: v128,
  reciprocal: v128,
): void {
  const top = f32x4.splat(<f32>((1 << bits) - 1));
  const none = f32x4.splat(0);
  const half = f32x4.splat(belowHalf);
  let signal = none;
  let noise = none;
  let product = none;
  let worst = none;
  const whole = f32x4.splat(wholeBits);
  const perWord = 32 / bits;
  // In a word of codes, the patterns of all but the first one or two are shifted out.
  let pattern = i32x4.splat(bits == 4 ? wholePattern + (wholePattern << 4) : wholePattern);
  let start = input;
  let written: usize = 0;
  for (let row = 0; row < rows; row += perWord) {
    const count = min(perWord, rows - row);
    if (count == 1) pattern = i32x4.splat(wholePattern);
    let word = none;
    const end = start;
    start += <usize>count * stride;
    let at = start;
    do {
      at -= stride;
      const value = f32x4.mul(v128.load(at), reciprocal);
      const exact = f32x4.add(value, zero);
      const code = f32x4.trunc(f32x4.add(f32x4.pmin(top, f32x4.pmax(none, exact)), half));
      const error = f32x4.sub(code, exact);
      signal = f32x4.add(signal, f32x4.mul(value, value));
      noise = f32x4.add(noise, f32x4.mul(error, error));
      product = f32x4.add(product, f32x4.mul(value, error));
      worst = f32x4.pmax(worst, f32x4.abs(error));
      word = i32x4.add(i32x4.shl(word, bits), f32x4.add(code, whole));
    } while (at !== end);
    storeLanes(codes + written, blobBytes * step, i32x4.sub(word, pattern));
    written += 4;
  }
  for (; written < blobBytes; written += 4) storeLanes(codes + written, blobBytes * step, none);
  const beyond = f32x4.eq(f32x4.abs(reciprocal), f32x4.splat(Infinity));
  if (v128.any_true(beyond)) {
    // A scale so small that it has no reciprocal: the values and their errors are next to nothing.
    signal = v128.andnot(signal, beyond);
    noise = f32x4.add(v128.andnot(noise, beyond), poison(input, stride, rows));
    product = v128.andnot(product, beyond);
    worst = v128.andnot(worst, beyond);
  }
  addSums(sums, scale, signal, noise, product, worst);
}
