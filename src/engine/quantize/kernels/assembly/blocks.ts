// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
import { addSums, belowHalf } from "./lanes";

/** 2^23: added to a smaller whole number, it leaves that number in the low bits, under this pattern. */
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

/**
 * Rounds four blocks side by side, one a lane, as MLAS does (onnxruntime core/mlas/lib/q4_dq.cpp). `step` counts the blocks from one lane's place
 * in the output to the next.
 */
function roundFour(
  bits: i32,
  symmetric: i32,
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
  if (symmetric) {
    const larger = v128.bitselect(high, low, f32x4.gt(f32x4.abs(high), f32x4.abs(low)));
    scale = f32x4.div(larger, f32x4.splat(-(<f32>(1 << (bits - 1)))));
    zero = f32x4.splat(<f32>(1 << (bits - 1)));
  } else {
    low = f32x4.pmin(none, low);
    high = f32x4.pmax(none, high);
    scale = f32x4.div(f32x4.sub(high, low), top);
    const point = f32x4.pmin(top, f32x4.pmax(none, f32x4.div(f32x4.neg(low), scale)));
    zero = v128.and(f32x4.trunc(f32x4.add(point, half)), f32x4.ne(scale, none));
  }
  const reciprocal = v128.and(f32x4.div(f32x4.splat(1), scale), f32x4.ne(scale, none));
  storeLanes(scales, 4 * step, scale);
  storeBytes(zeroPoints, step, i32x4.trunc_sat_f32x4_s(zero));

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
    at = start;
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
    // A scale so small that it has no reciprocal: the values are next to nothing, and so is their error.
    signal = v128.andnot(signal, beyond);
    noise = f32x4.add(v128.andnot(noise, beyond), poison(input, stride, rows));
    product = v128.andnot(product, beyond);
    worst = v128.andnot(worst, beyond);
  }
  addSums(sums, scale, signal, noise, product, worst);
}

/** Bytes of the codes of one block. */
function packedBlockBytes(blockSize: i32, bits: i32): usize {
  return (<usize>blockSize * <usize>bits) >> 3;
}

/**
 * Quantizes a strip of `rows` rows, `columns` (a multiple of four) wide, in blocks down its columns. Writes codes, scales
 * (float32) and zero points (a byte each) as [column, block].
 */
export function roundColumns(
  input: usize,
  stride: usize,
  columns: i32,
  rows: i32,
  blockSize: i32,
  bits: i32,
  symmetric: i32,
  codes: usize,
  scales: usize,
  zeroPoints: usize,
  sums: usize,
): void {
  const blob = packedBlockBytes(blockSize, bits);
  const blocks = (rows + blockSize - 1) / blockSize;
  for (let block = 0; block < blocks; block++) {
    const count = min(blockSize, rows - block * blockSize);
    for (let column = 0; column < columns; column += 4) {
      const from = input + <usize>block * <usize>blockSize * stride + 4 * <usize>column;
      const to = <usize>(column * blocks + block);
      roundFour(
        bits,
        symmetric,
        from,
        stride,
        count,
        codes + to * blob,
        blob,
        scales + 4 * to,
        zeroPoints + to,
        blocks,
        sums,
      );
    }
  }
}

/** Turns four rows of `count` values into `count` rows of four. */
function transposeFour(input: usize, stride: usize, count: i32, panel: usize): void {
  for (let index = 0; index < count; index += 4) {
    const a = v128.load(input);
    const b = v128.load(input + stride);
    const c = v128.load(input + 2 * stride);
    const d = v128.load(input + 3 * stride);
    const ab = i8x16.shuffle(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const cd = i8x16.shuffle(c, d, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const abHigh = i8x16.shuffle(
      a,
      b,
      8,
      9,
      10,
      11,
      24,
      25,
      26,
      27,
      12,
      13,
      14,
      15,
      28,
      29,
      30,
      31,
    );
    const cdHigh = i8x16.shuffle(
      c,
      d,
      8,
      9,
      10,
      11,
      24,
      25,
      26,
      27,
      12,
      13,
      14,
      15,
      28,
      29,
      30,
      31,
    );
    v128.store(
      panel,
      i8x16.shuffle(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
    );
    v128.store(
      panel + 16,
      i8x16.shuffle(ab, cd, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31),
    );
    v128.store(
      panel + 32,
      i8x16.shuffle(abHigh, cdHigh, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
    );
    v128.store(
      panel + 48,
      i8x16.shuffle(abHigh, cdHigh, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31),
    );
    input += 16;
    panel += 64;
  }
}

/**
 * Quantizes `rows` rows (a multiple of four) of `columns` values in blocks along the rows. Writes codes, scales and zero points as [row, block].
 * `panel` is room for four blocks of values.
 */
export function roundRows(
  input: usize,
  stride: usize,
  columns: i32,
  rows: i32,
  blockSize: i32,
  bits: i32,
  symmetric: i32,
  codes: usize,
  scales: usize,
  zeroPoints: usize,
  sums: usize,
  panel: usize,
): void {
  const blob = packedBlockBytes(blockSize, bits);
  const blocks = (columns + blockSize - 1) / blockSize;
  for (let row = 0; row < rows; row += 4) {
    for (let block = 0; block < blocks; block++) {
      const count = min(blockSize, columns - block * blockSize);
      transposeFour(
        input + <usize>row * stride + 4 * <usize>(block * blockSize),
        stride,
        count,
        panel,
      );
      const to = <usize>(row * blocks + block);
      roundFour(
        bits,
        symmetric,
        panel,
        16,
        count,
        codes + to * blob,
        blob,
        scales + 4 * to,
        zeroPoints + to,
        blocks,
        sums,
      );
    }
  }
}
