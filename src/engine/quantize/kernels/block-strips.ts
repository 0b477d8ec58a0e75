import { countBlocks, type BlockFormat, type MatrixShape, type RowTile } from "./block-format.ts";
import { memoryOffsets, simd, simdFloats, stripValues } from "./simd.ts";

/** A part of a matrix whose codes, scales and zero points lie at `places` as [output, block]. */
export interface BlockStrip {
  firstOutput: number;
  outputs: number;
  firstBlock: number;
  blocks: number;
  /** Values along K that the strip has; the last block may be short of some. */
  depth: number;
}

interface BlockMatrix {
  readonly shape: MatrixShape;
  readonly format: BlockFormat;
}

/** Stages and quantizes a tile strip by strip. `take` is called after each; the strip it gets is used again. */
export function quantizeStrips(
  tile: RowTile,
  matrix: BlockMatrix,
  onStrip: (strip: BlockStrip) => void,
): void {
  if (matrix.shape.order === "kn") quantizeColumnStrips(tile, matrix, onStrip);
  else quantizeRowStrips(tile, matrix, onStrip);
}

function quantizeColumnStrips(
  { values, firstRow }: RowTile,
  { shape: { n }, format }: BlockMatrix,
  onStrip: (strip: BlockStrip) => void,
): void {
  const { bits, blockSize, symmetric } = format;
  const rows = values.length / n;
  const depth = Math.min(
    Math.max(blockSize, columnStripDepth),
    Math.ceil(rows / blockSize) * blockSize,
  );
  const width = Math.min(roundUpToFour(n), Math.floor(stripValues / depth / 4) * 4);
  // The odd line keeps the rows of a strip from falling on the same few cache sets.
  const stride = width + 16;
  const strip: BlockStrip = { firstOutput: 0, outputs: 0, firstBlock: 0, blocks: 0, depth: 0 };
  for (let row = 0; row < rows; row += depth) {
    strip.depth = Math.min(depth, rows - row);
    strip.firstBlock = (firstRow + row) / blockSize;
    strip.blocks = countBlocks(strip.depth, format);
    for (let column = 0; column < n; column += width) {
      strip.firstOutput = column;
      strip.outputs = Math.min(width, n - column);
      stageColumns(
        values,
        { from: row * n + column, stride: n, rows: strip.depth, length: strip.outputs },
        stride,
      );
      simd.roundColumns(
        memoryOffsets.input,
        stride * 4,
        roundUpToFour(strip.outputs),
        strip.depth,
        blockSize,
        bits,
        Number(symmetric),
        memoryOffsets.codes,
        memoryOffsets.first,
        memoryOffsets.second,
        memoryOffsets.sums,
      );
      onStrip(strip);
    }
  }
}

function quantizeRowStrips(
  { values, firstRow }: RowTile,
  { shape: { k }, format }: BlockMatrix,
  onStrip: (strip: BlockStrip) => void,
): void {
  const { bits, blockSize, symmetric } = format;
  const rows = values.length / k;
  const depth = Math.min(k, rowStripLength);
  const height = Math.min(rows, Math.max(4, Math.floor(stripValues / depth / 4) * 4));
  const strip: BlockStrip = { firstOutput: 0, outputs: 0, firstBlock: 0, blocks: 0, depth: 0 };
  for (let row = 0; row < rows; row += height) {
    strip.firstOutput = firstRow + row;
    strip.outputs = Math.min(height, rows - row);
    for (let start = 0; start < k; start += depth) {
      strip.depth = Math.min(depth, k - start);
      strip.firstBlock = start / blockSize;
      strip.blocks = countBlocks(strip.depth, format);
      stageRows(values, {
        from: row * k + start,
        stride: k,
        rows: strip.outputs,
        length: strip.depth,
      });
      simd.roundRows(
        memoryOffsets.input,
        strip.depth * 4,
        strip.depth,
        roundUpToFour(strip.outputs),
        blockSize,
        bits,
        Number(symmetric),
        memoryOffsets.codes,
        memoryOffsets.first,
        memoryOffsets.second,
        memoryOffsets.sums,
        memoryOffsets.panel,
      );
      onStrip(strip);
    }
  }
}

/** Copies rows to every `pitch`th value, and zeros for as many columns as are missing to a multiple of four. */
function stageColumns(
  values: Float32Array,
  { from, stride, rows, length }: RowsToStage,
  pitch: number,
): void {
  const input = memoryOffsets.input / 4;
  const missing = roundUpToFour(length) - length;
  for (let row = 0; row < rows; row++) {
    const start = from + row * stride;
    const to = input + row * pitch;
    simdFloats.set(values.subarray(start, start + length), to);
    if (missing > 0) simdFloats.fill(0, to + length, to + length + missing);
  }
}

interface RowsToStage {
  readonly from: number;
  readonly stride: number;
  readonly rows: number;
  readonly length: number;
}

/** Copies rows one behind the other, and zeros for as many as are missing to a multiple of four. */
function stageRows(values: Float32Array, { from, stride, rows, length }: RowsToStage): void {
  const input = memoryOffsets.input / 4;
  if (length === stride) simdFloats.set(values.subarray(from, from + rows * length), input);
  else {
    for (let row = 0; row < rows; row++) {
      const start = from + row * stride;
      simdFloats.set(values.subarray(start, start + length), input + row * length);
    }
  }
  simdFloats.fill(0, input + rows * length, input + roundUpToFour(rows) * length);
}

/** Rows of a strip of a `kn` matrix: some blocks deep, so that a column's codes are some tens of bytes. */
const columnStripDepth = 64;
/** Values of a row of a strip of an `nk` matrix. */
const rowStripLength = 4096;

function roundUpToFour(count: number): number {
  return Math.ceil(count / 4) * 4;
}
