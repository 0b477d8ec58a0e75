// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
import { roundFour } from "./round-four";

/** Bytes of the codes of one block. */
function packedBlockBytes(blockSize: i32, bits: i32): usize {
  return (<usize>blockSize * <usize>bits) >> 3;
}

/**
 * Quantizes a strip of `rows` rows, `columns` (a multiple of four) wide, in blocks along columns.
 * Writes codes, scales (float32) and zero points (a byte each) as [column, block].
 */
export function roundColumns(
  input: usize,
  stride: usize,
  columns: i32,
  rows: i32,
  blockSize: i32,
  bits: i32,
  mode: i32,
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
        mode,
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
    const ab = i32x4.shuffle(a, b, 0, 4, 1, 5);
    const cd = i32x4.shuffle(c, d, 0, 4, 1, 5);
    const abHigh = i32x4.shuffle(a, b, 2, 6, 3, 7);
    const cdHigh = i32x4.shuffle(c, d, 2, 6, 3, 7);
    v128.store(panel, i64x2.shuffle(ab, cd, 0, 2));
    v128.store(panel + 16, i64x2.shuffle(ab, cd, 1, 3));
    v128.store(panel + 32, i64x2.shuffle(abHigh, cdHigh, 0, 2));
    v128.store(panel + 48, i64x2.shuffle(abHigh, cdHigh, 1, 3));
    input += 16;
    panel += 64;
  }
}

/**
 * Quantizes `rows` rows (a multiple of four) of `columns` values in blocks along the rows. Writes
 * codes, scales and zero points as [row, block]. `panel` has space for four blocks of values.
 */
export function roundRows(
  input: usize,
  stride: usize,
  columns: i32,
  rows: i32,
  blockSize: i32,
  bits: i32,
  mode: i32,
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
        mode,
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
