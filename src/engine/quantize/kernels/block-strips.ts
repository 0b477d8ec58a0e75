import { countBlocks } from "./block-format.ts";
import type { BlockFormat, BlockMatrix, RowTile } from "./block-format.ts";
import { roundUpToFour } from "./channel-layout.ts";
import { memoryOffsets, simd, simdFloats, stripValues } from "./simd.ts";

/** A part of a matrix whose results are at `memoryOffsets` as [output, block]. */
export interface BlockStrip {
  firstOutput: number;
  outputs: number;
  firstBlock: number;
  blocks: number;
  /** Values along K that the strip has; the last block may be short of some. */
  depth: number;
}

/**
 * Stages and quantizes a tile strip by strip. `onStrip` is called after each; the strip it gets is
 * used again.
 */
export function quantizeStrips(
  tile: RowTile,
  matrix: BlockMatrix,
  onStrip: (strip: BlockStrip) => void,
): void {
  if (matrix.shape.order === "kn") quantizeColumnStrips(tile, matrix, onStrip);
  else quantizeRowStrips(tile, matrix, onStrip);
}

function createStrip(): BlockStrip {
  return { firstOutput: 0, outputs: 0, firstBlock: 0, blocks: 0, depth: 0 };
}

function quantizeColumnStrips(
  { values, firstRow }: RowTile,
  { shape: { n }, format }: BlockMatrix,
  onStrip: (strip: BlockStrip) => void,
): void {
  const { blockSize } = format;
  const rows = values.length / n;
  const deepest = Math.ceil(rows / blockSize) * blockSize;
  const depth = Math.min(Math.max(blockSize, columnStripDepth), deepest);
  const width = Math.min(roundUpToFour(n), Math.floor(stripValues / depth / 4) * 4);
  // The odd line keeps the rows of a strip from falling on the same few cache sets.
  const pitch = width + 16;
  const strip = createStrip();
  for (let row = 0; row < rows; row += depth) {
    strip.depth = Math.min(depth, rows - row);
    strip.firstBlock = (firstRow + row) / blockSize;
    strip.blocks = countBlocks(strip.depth, format);
    for (let column = 0; column < n; column += width) {
      strip.firstOutput = column;
      strip.outputs = Math.min(width, n - column);
      const from = row * n + column;
      const staged = { from, stride: n, rows: strip.depth, length: strip.outputs };
      stageColumns(values, staged, pitch);
      runColumnKernel(strip, format, pitch);
      onStrip(strip);
    }
  }
}

function runColumnKernel(
  { outputs, depth }: BlockStrip,
  { blockSize, bits, ...format }: BlockFormat,
  pitch: number,
): void {
  simd.roundColumns(
    memoryOffsets.input,
    pitch * 4,
    roundUpToFour(outputs),
    depth,
    blockSize,
    bits,
    kernelMode(format),
    memoryOffsets.codes,
    memoryOffsets.first,
    memoryOffsets.second,
    memoryOffsets.sums,
  );
}

function quantizeRowStrips(
  { values, firstRow }: RowTile,
  { shape: { k }, format }: BlockMatrix,
  onStrip: (strip: BlockStrip) => void,
): void {
  const rows = values.length / k;
  const depth = Math.min(k, rowStripLength);
  // Codes fill their blocks, also where a row is shorter than one.
  const codesPerRow = countBlocks(depth, format) * format.blockSize;
  const height = Math.min(rows, Math.max(4, Math.floor(stripValues / codesPerRow / 4) * 4));
  const strip = createStrip();
  for (let row = 0; row < rows; row += height) {
    strip.firstOutput = firstRow + row;
    strip.outputs = Math.min(height, rows - row);
    for (let start = 0; start < k; start += depth) {
      strip.depth = Math.min(depth, k - start);
      strip.firstBlock = start / format.blockSize;
      strip.blocks = countBlocks(strip.depth, format);
      const from = row * k + start;
      stageRows(values, { from, stride: k, rows: strip.outputs, length: strip.depth });
      runRowKernel(strip, format);
      onStrip(strip);
    }
  }
}

function runRowKernel(
  { outputs, depth }: BlockStrip,
  { blockSize, bits, ...format }: BlockFormat,
): void {
  simd.roundRows(
    memoryOffsets.input,
    depth * 4,
    depth,
    roundUpToFour(outputs),
    blockSize,
    bits,
    kernelMode(format),
    memoryOffsets.codes,
    memoryOffsets.first,
    memoryOffsets.second,
    memoryOffsets.sums,
    memoryOffsets.panel,
  );
}

function kernelMode({ symmetric, isOnGrid }: Pick<BlockFormat, "symmetric" | "isOnGrid">): number {
  return isOnGrid === true ? 2 : Number(symmetric);
}

/** Copies rows to every `pitch`th value, with zeros for columns missing to a multiple of four. */
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

/** Copies rows one after the other, with zeros for rows missing to a multiple of four. */
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

/** Rows of a strip of a `kn` matrix, of whose columns the values take some tens of bytes each. */
const columnStripDepth = 64;
/** Values of a row of a strip of an `nk` matrix. */
const rowStripLength = 4096;
