// @ts-nocheck AssemblyScript: compiled into ../second-order-module.ts, never run as TypeScript.
/* oxlint-disable */

/** Columns of a panel of activations. */
const panelColumns: i32 = 8;

/** Copies rows of `columns` values (a multiple of eight) into panels of eight columns each. */
function packPanels(from: usize, rows: i32, columns: i32, to: usize): void {
  for (let column = 0; column < columns; column += panelColumns) {
    let source = from + 4 * <usize>column;
    for (let row = 0; row < rows; row++) {
      v128.store(to, v128.load(source));
      v128.store(to, v128.load(source, 16), 16);
      source += 4 * <usize>columns;
      to += 32;
    }
  }
}

/**
 * Adds to the upper triangle of `moments`, a matrix of `columns` (a multiple of eight) rows and
 * columns, the products of each of the first `leading` columns of `rows` rows with those after it.
 * `panels` has space for the rows.
 */
export function addMoments(
  values: usize,
  rows: i32,
  columns: i32,
  leading: i32,
  panels: usize,
  moments: usize,
): void {
  packPanels(values, rows, columns, panels);
  const panelBytes = <usize>rows * 32;
  const pitch = 4 * <usize>columns;
  for (let first = 0; first < leading; first += 4) {
    const left = panels + <usize>(first >> 3) * panelBytes + <usize>(first & 4) * 4;
    for (let second = first & ~7; second < columns; second += panelColumns) {
      let a = left;
      let b = panels + <usize>(second >> 3) * panelBytes;
      const to = moments + <usize>first * pitch + 4 * <usize>second;
      let s00 = v128.load(to);
      let s01 = v128.load(to, 16);
      let s10 = v128.load(to + pitch);
      let s11 = v128.load(to + pitch, 16);
      let s20 = v128.load(to + 2 * pitch);
      let s21 = v128.load(to + 2 * pitch, 16);
      let s30 = v128.load(to + 3 * pitch);
      let s31 = v128.load(to + 3 * pitch, 16);
      for (let row = 0; row < rows; row++) {
        const low = v128.load(b);
        const high = v128.load(b, 16);
        const x0 = v128.load32_splat(a);
        s00 = f32x4.add(s00, f32x4.mul(x0, low));
        s01 = f32x4.add(s01, f32x4.mul(x0, high));
        const x1 = v128.load32_splat(a, 4);
        s10 = f32x4.add(s10, f32x4.mul(x1, low));
        s11 = f32x4.add(s11, f32x4.mul(x1, high));
        const x2 = v128.load32_splat(a, 8);
        s20 = f32x4.add(s20, f32x4.mul(x2, low));
        s21 = f32x4.add(s21, f32x4.mul(x2, high));
        const x3 = v128.load32_splat(a, 12);
        s30 = f32x4.add(s30, f32x4.mul(x3, low));
        s31 = f32x4.add(s31, f32x4.mul(x3, high));
        a += 32;
        b += 32;
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
  }
}

function sumLanes(lanes: v128): f64 {
  return f64x2.extract_lane(lanes, 0) + f64x2.extract_lane(lanes, 1);
}

/** Subtracts from four values of a row the products of the `count` (even) before them. */
function subtractProducts(row: usize, rows: usize, pitch: usize, count: i32, to: usize): void {
  let s0 = f64x2.splat(0);
  let s1 = f64x2.splat(0);
  let s2 = f64x2.splat(0);
  let s3 = f64x2.splat(0);
  const end = row + 8 * <usize>count;
  while (row < end) {
    const x = v128.load(row);
    s0 = f64x2.add(s0, f64x2.mul(x, v128.load(rows)));
    s1 = f64x2.add(s1, f64x2.mul(x, v128.load(rows + pitch)));
    s2 = f64x2.add(s2, f64x2.mul(x, v128.load(rows + 2 * pitch)));
    s3 = f64x2.add(s3, f64x2.mul(x, v128.load(rows + 3 * pitch)));
    row += 16;
    rows += 16;
  }
  store<f64>(to, load<f64>(to) - sumLanes(s0));
  store<f64>(to, load<f64>(to, 8) - sumLanes(s1), 8);
  store<f64>(to, load<f64>(to, 16) - sumLanes(s2), 16);
  store<f64>(to, load<f64>(to, 24) - sumLanes(s3), 24);
}

/** Completes four columns of a row of the factor, or fewer up to the diagonal. */
function solveRow(matrix: usize, pitch: usize, row: i32, first: i32): bool {
  const values = matrix + <usize>row * pitch;
  const end = min(first + 4, row + 1);
  for (let column = first; column < end; column++) {
    const other = matrix + <usize>column * pitch;
    let sum = load<f64>(values + 8 * <usize>column);
    for (let before = first; before < column; before++) {
      sum -= load<f64>(values + 8 * <usize>before) * load<f64>(other + 8 * <usize>before);
    }
    if (column == row) {
      if (!(sum > 0)) return false;
      store<f64>(values + 8 * <usize>column, Math.sqrt(sum));
    } else {
      store<f64>(values + 8 * <usize>column, sum / load<f64>(other + 8 * <usize>column));
    }
  }
  return true;
}

/**
 * Replaces the lower triangle of a symmetric matrix of float64, of a multiple of four rows, by its
 * Cholesky factor. Returns 0 where the matrix is not positive definite.
 */
export function factorize(matrix: usize, size: i32): i32 {
  const pitch = 8 * <usize>size;
  for (let first = 0; first < size; first += 4) {
    const rows = matrix + <usize>first * pitch;
    for (let row = first; row < size; row++) {
      const values = matrix + <usize>row * pitch;
      subtractProducts(values, rows, pitch, first, values + 8 * <usize>first);
      if (!solveRow(matrix, pitch, row, first)) return 0;
    }
  }
  return 1;
}

function sumFour(lanes: v128): f32 {
  return (
    f32x4.extract_lane(lanes, 0) +
    f32x4.extract_lane(lanes, 1) +
    (f32x4.extract_lane(lanes, 2) + f32x4.extract_lane(lanes, 3))
  );
}

/**
 * Products of rows of `errors` and of `factors`, of which each has `count` (a multiple of four)
 * values: `rows` and `columns` (multiples of four and two) results as [row, column].
 */
export function multiplyRows(
  errors: usize,
  errorPitch: usize,
  rows: i32,
  factors: usize,
  factorPitch: usize,
  columns: i32,
  count: i32,
  into: usize,
): void {
  const outputPitch = 4 * <usize>columns;
  for (let row = 0; row < rows; row += 4) {
    const e0 = errors + <usize>row * errorPitch;
    for (let column = 0; column < columns; column += 2) {
      let e = e0;
      let f = factors + <usize>column * factorPitch;
      const end = e0 + 4 * <usize>count;
      let s00 = f32x4.splat(0);
      let s01 = f32x4.splat(0);
      let s10 = f32x4.splat(0);
      let s11 = f32x4.splat(0);
      let s20 = f32x4.splat(0);
      let s21 = f32x4.splat(0);
      let s30 = f32x4.splat(0);
      let s31 = f32x4.splat(0);
      while (e < end) {
        const f0 = v128.load(f);
        const f1 = v128.load(f + factorPitch);
        const x0 = v128.load(e);
        s00 = f32x4.add(s00, f32x4.mul(x0, f0));
        s01 = f32x4.add(s01, f32x4.mul(x0, f1));
        const x1 = v128.load(e + errorPitch);
        s10 = f32x4.add(s10, f32x4.mul(x1, f0));
        s11 = f32x4.add(s11, f32x4.mul(x1, f1));
        const x2 = v128.load(e + 2 * errorPitch);
        s20 = f32x4.add(s20, f32x4.mul(x2, f0));
        s21 = f32x4.add(s21, f32x4.mul(x2, f1));
        const x3 = v128.load(e + 3 * errorPitch);
        s30 = f32x4.add(s30, f32x4.mul(x3, f0));
        s31 = f32x4.add(s31, f32x4.mul(x3, f1));
        e += 16;
        f += 16;
      }
      const to = into + <usize>row * outputPitch + 4 * <usize>column;
      store<f32>(to, sumFour(s00));
      store<f32>(to, sumFour(s01), 4);
      store<f32>(to + outputPitch, sumFour(s10));
      store<f32>(to + outputPitch, sumFour(s11), 4);
      store<f32>(to + 2 * outputPitch, sumFour(s20));
      store<f32>(to + 2 * outputPitch, sumFour(s21), 4);
      store<f32>(to + 3 * outputPitch, sumFour(s30));
      store<f32>(to + 3 * outputPitch, sumFour(s31), 4);
    }
  }
}

/**
 * Sum of `count` squared errors of rounding values with a scale, each times what it costs: values and
 * costs are float32.
 */
export function roundingLoss(
  values: usize,
  costs: usize,
  count: i32,
  scale: f32,
  zeroPoint: f32,
  highest: f32,
): f32 {
  const end = values + 4 * <usize>(count & ~3);
  const inverse: f32 = 1 / scale;
  const scales = f32x4.splat(scale);
  const inverses = f32x4.splat(inverse);
  const lowest = f32x4.splat(-zeroPoint);
  const most = f32x4.splat(highest - zeroPoint);
  let sums = f32x4.splat(0);
  while (values < end) {
    const value = v128.load(values);
    const steps = f32x4.nearest(f32x4.mul(value, inverses));
    const code = f32x4.min(f32x4.max(steps, lowest), most);
    const error = f32x4.sub(value, f32x4.mul(code, scales));
    sums = f32x4.add(sums, f32x4.mul(v128.load(costs), f32x4.mul(error, error)));
    values += 16;
    costs += 16;
  }
  let sum = sumFour(sums);
  for (let rest = count & 3; rest > 0; rest--) {
    const value = load<f32>(values);
    const code = min(max(nearest(value * inverse), -zeroPoint), highest - zeroPoint);
    const error = value - code * scale;
    sum += load<f32>(costs) * error * error;
    values += 4;
    costs += 4;
  }
  return sum;
}
