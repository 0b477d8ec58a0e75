// @ts-nocheck AssemblyScript: compiled into ../second-order-module.ts, never run as TypeScript.
/* oxlint-disable */

/** Rows of a factor that are completed before those before them are changed by all of them at once. */
const panelRows: i32 = 32;

/** Subtracts from four columns of four rows the products of `count` rows after them. */
function subtractTile(left: usize, right: usize, pitch: usize, count: i32, to: usize): void {
  let s00 = v128.load(to);
  let s01 = v128.load(to, 16);
  let s10 = v128.load(to + pitch);
  let s11 = v128.load(to + pitch, 16);
  let s20 = v128.load(to + 2 * pitch);
  let s21 = v128.load(to + 2 * pitch, 16);
  let s30 = v128.load(to + 3 * pitch);
  let s31 = v128.load(to + 3 * pitch, 16);
  for (let row = 0; row < count; row++) {
    const low = v128.load(right);
    const high = v128.load(right, 16);
    const x0 = v128.load64_splat(left);
    s00 = f64x2.sub(s00, f64x2.mul(x0, low));
    s01 = f64x2.sub(s01, f64x2.mul(x0, high));
    const x1 = v128.load64_splat(left, 8);
    s10 = f64x2.sub(s10, f64x2.mul(x1, low));
    s11 = f64x2.sub(s11, f64x2.mul(x1, high));
    const x2 = v128.load64_splat(left, 16);
    s20 = f64x2.sub(s20, f64x2.mul(x2, low));
    s21 = f64x2.sub(s21, f64x2.mul(x2, high));
    const x3 = v128.load64_splat(left, 24);
    s30 = f64x2.sub(s30, f64x2.mul(x3, low));
    s31 = f64x2.sub(s31, f64x2.mul(x3, high));
    left += pitch;
    right += pitch;
  }
  v128.store(to, s00);
  v128.store(to, s01, 16);
  v128.store(to + pitch, s10);
  v128.store(to + pitch, s11, 16);
  v128.store(to + 2 * pitch, s20);
  v128.store(to + 2 * pitch, s21, 16);
  v128.store(to + 3 * pitch, s30);
  v128.store(to + 3 * pitch, s31, 16);
}

/** Completes a row, from which `others` rows after it in its panel are still to be subtracted. */
function completeRow(matrix: usize, pitch: usize, row: i32, others: i32): bool {
  const values = matrix + <usize>row * pitch;
  const end = values + 8 * <usize>(row + 1);
  for (let other = 1; other <= others; other++) {
    let from = values + <usize>other * pitch;
    const share = v128.load64_splat(from + 8 * <usize>row);
    for (let to = values; to < end; to += 16) {
      v128.store(to, f64x2.sub(v128.load(to), f64x2.mul(share, v128.load(from))));
      from += 16;
    }
  }
  const square = load<f64>(values + 8 * <usize>row);
  if (!(square > 0)) return false;
  const inverse = f64x2.splat(1 / Math.sqrt(square));
  for (let to = values; to < end; to += 16) {
    v128.store(to, f64x2.mul(v128.load(to), inverse));
  }
  return true;
}

/**
 * Replaces the lower triangle of a symmetric matrix of float64, of a multiple of four rows, by T with
 * TᵀT the matrix. What is above the diagonal is spoilt. Returns 0 where the matrix is not positive
 * definite.
 */
export function factorize(matrix: usize, size: i32): i32 {
  const pitch: usize = 8 * <usize>size;
  for (let end = size; end > 0;) {
    const start = ((end - 1) / panelRows) * panelRows;
    for (let row = end - 1; row >= start; row--) {
      if (!completeRow(matrix, pitch, row, end - 1 - row)) return 0;
    }
    const panel = matrix + <usize>start * pitch;
    for (let row = 0; row < start; row += 4) {
      const to = matrix + <usize>row * pitch;
      for (let column = 0; column <= row; column += 4) {
        const right: usize = 8 * <usize>column;
        subtractTile(panel + 8 * <usize>row, panel + right, pitch, end - start, to + right);
      }
    }
    end = start;
  }
  return 1;
}

/** Adds products to eight columns of four rows, as addProducts does. */
function addTile(
  factors: usize,
  rowStride: usize,
  stride: usize,
  count: i32,
  values: usize,
  pitch: usize,
  to: usize,
): void {
  let s00 = v128.load(to);
  let s01 = v128.load(to, 16);
  let s10 = v128.load(to + pitch);
  let s11 = v128.load(to + pitch, 16);
  let s20 = v128.load(to + 2 * pitch);
  let s21 = v128.load(to + 2 * pitch, 16);
  let s30 = v128.load(to + 3 * pitch);
  let s31 = v128.load(to + 3 * pitch, 16);
  for (let index = 0; index < count; index++) {
    const low = v128.load(values);
    const high = v128.load(values, 16);
    const x0 = v128.load32_splat(factors);
    s00 = f32x4.add(s00, f32x4.mul(x0, low));
    s01 = f32x4.add(s01, f32x4.mul(x0, high));
    const x1 = v128.load32_splat(factors + rowStride);
    s10 = f32x4.add(s10, f32x4.mul(x1, low));
    s11 = f32x4.add(s11, f32x4.mul(x1, high));
    const x2 = v128.load32_splat(factors + 2 * rowStride);
    s20 = f32x4.add(s20, f32x4.mul(x2, low));
    s21 = f32x4.add(s21, f32x4.mul(x2, high));
    const x3 = v128.load32_splat(factors + 3 * rowStride);
    s30 = f32x4.add(s30, f32x4.mul(x3, low));
    s31 = f32x4.add(s31, f32x4.mul(x3, high));
    factors += stride;
    values += pitch;
  }
  v128.store(to, s00);
  v128.store(to, s01, 16);
  v128.store(to + pitch, s10);
  v128.store(to + pitch, s11, 16);
  v128.store(to + 2 * pitch, s20);
  v128.store(to + 2 * pitch, s21, 16);
  v128.store(to + 3 * pitch, s30);
  v128.store(to + 3 * pitch, s31, 16);
}

/** Adds products to eight columns of a row. */
function addRowTile(
  factors: usize,
  stride: usize,
  count: i32,
  values: usize,
  pitch: usize,
  to: usize,
): void {
  let low = v128.load(to);
  let high = v128.load(to, 16);
  for (let index = 0; index < count; index++) {
    const x = v128.load32_splat(factors);
    low = f32x4.add(low, f32x4.mul(x, v128.load(values)));
    high = f32x4.add(high, f32x4.mul(x, v128.load(values, 16)));
    factors += stride;
    values += pitch;
  }
  v128.store(to, low);
  v128.store(to, high, 16);
}

/**
 * Adds to `rows` rows of float32 the product of a matrix of as many rows and `count` columns with
 * `count` rows of values. All rows have `columns` (a multiple of eight) values.
 */
export function addProducts(
  factors: usize,
  rowStride: usize,
  stride: usize,
  rows: i32,
  count: i32,
  values: usize,
  columns: i32,
  pitch: usize,
  into: usize,
): void {
  for (let column = 0; column < columns; column += 8) {
    const from = values + 4 * <usize>column;
    let left = factors;
    let to = into + 4 * <usize>column;
    let row = 0;
    for (; row + 4 <= rows; row += 4) {
      addTile(left, rowStride, stride, count, from, pitch, to);
      left += 4 * rowStride;
      to += 4 * pitch;
    }
    for (; row < rows; row++) {
      addRowTile(left, stride, count, from, pitch, to);
      left += rowStride;
      to += pitch;
    }
  }
}

/** What a value is rounded to, in steps from zero: halves up. */
function toSteps(value: v128, scale: v128, lowest: v128, highest: v128): v128 {
  const steps = f32x4.floor(f32x4.add(f32x4.div(value, scale), f32x4.splat(0.5)));
  return f32x4.min(f32x4.max(steps, lowest), highest);
}

/**
 * Rounds `count` inputs of four outputs one after the other, each with the errors of those before it.
 * Addresses are those of the first input's row, but those of `values`, `codes`, `scales` and
 * `points`, which `order` says the rows of.
 */
export function roundInputs(
  order: usize,
  count: i32,
  columns: i32,
  pitch: usize,
  values: usize,
  sums: usize,
  errors: usize,
  feedback: usize,
  feedbackPitch: usize,
  scales: usize,
  points: usize,
  blockSize: i32,
  highest: f32,
  codes: usize,
): void {
  const most = f32x4.splat(highest);
  for (let column = 0; column < columns; column += 4) {
    const offset: usize = 4 * <usize>column;
    for (let index = 0; index < count; index++) {
      const input = load<u32>(order + 4 * <usize>index);
      const block = <usize>(input / blockSize) * pitch + offset;
      const value = v128.load(values + <usize>input * pitch + offset);
      let wanted = f32x4.add(value, v128.load(sums + <usize>index * pitch + offset));
      let factors = feedback + <usize>index * feedbackPitch;
      let error = errors + offset;
      for (let before = 0; before < index; before++) {
        wanted = f32x4.add(wanted, f32x4.mul(v128.load32_splat(factors), v128.load(error)));
        factors += 4;
        error += pitch;
      }
      const scale = v128.load(scales + block);
      const point = v128.load(points + block);
      const steps = toSteps(wanted, scale, f32x4.neg(point), f32x4.sub(most, point));
      v128.store(error, f32x4.sub(value, f32x4.mul(steps, scale)));
      const code = i32x4.trunc_sat_f32x4_u(f32x4.add(steps, point));
      const to = codes + <usize>input * (pitch >> 2) + <usize>column;
      const narrow = i16x8.narrow_i32x4_u(code, code);
      store<u32>(to, i32x4.extract_lane(i8x16.narrow_i16x8_u(narrow, narrow), 0));
    }
  }
}

/**
 * Chooses scales and zero points of four outputs' blocks, `count` rows of values: those with the
 * least squares of errors, each times what it costs, of some that clip the largest values.
 */
export function chooseScales(
  values: usize,
  pitch: usize,
  count: i32,
  columns: i32,
  costs: usize,
  shrinkages: usize,
  tried: i32,
  highest: f32,
  symmetric: i32,
  scales: usize,
  points: usize,
): void {
  const zero = f32x4.splat(0);
  const most = f32x4.splat(highest);
  const middle = f32x4.splat((highest + 1) / 2);
  for (let column = 0; column < columns; column += 4) {
    const offset: usize = 4 * <usize>column;
    let low = zero;
    let high = zero;
    for (let row = 0; row < count; row++) {
      const value = v128.load(values + <usize>row * pitch + offset);
      low = f32x4.min(low, value);
      high = f32x4.max(high, value);
    }
    let bestScale = f32x4.splat(1);
    let bestPoint = symmetric ? middle : zero;
    let least = f32x4.splat(Infinity);
    for (let index = 0; index < tried; index++) {
      const shrinkage = v128.load32_splat(shrinkages + 4 * <usize>index);
      let scale: v128;
      let point = middle;
      if (symmetric) {
        const largest = v128.bitselect(low, high, f32x4.gt(f32x4.neg(low), high));
        scale = f32x4.div(f32x4.mul(f32x4.neg(largest), shrinkage), middle);
      } else {
        scale = f32x4.div(f32x4.mul(f32x4.sub(high, low), shrinkage), most);
        point = toSteps(f32x4.mul(f32x4.neg(low), shrinkage), scale, zero, most);
      }
      const lowest = f32x4.neg(point);
      const largestStep = f32x4.sub(most, point);
      const inverse = f32x4.div(f32x4.splat(1), scale);
      let loss = zero;
      for (let row = 0; row < count; row++) {
        const value = v128.load(values + <usize>row * pitch + offset);
        const nearest = f32x4.nearest(f32x4.mul(value, inverse));
        const steps = f32x4.min(f32x4.max(nearest, lowest), largestStep);
        const error = f32x4.sub(value, f32x4.mul(steps, scale));
        const cost = v128.load32_splat(costs + 4 * <usize>row);
        loss = f32x4.add(loss, f32x4.mul(cost, f32x4.mul(error, error)));
      }
      const isUsable = v128.and(f32x4.lt(loss, least), f32x4.ne(scale, zero));
      least = v128.bitselect(loss, least, isUsable);
      bestScale = v128.bitselect(scale, bestScale, isUsable);
      bestPoint = v128.bitselect(point, bestPoint, isUsable);
    }
    v128.store(scales + offset, bestScale);
    v128.store(points + offset, bestPoint);
  }
}
