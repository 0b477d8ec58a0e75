import type { ErrorSums } from "./error-sums.ts";
import type { BlockFormat, BlockMatrix, QuantizedBlocks, RowTile } from "./block-format.ts";
import { type BlockStrip, quantizeStrips } from "./block-strips.ts";
import { clearKernelSums, memoryOffsets, simdBytes, simdFloats, addKernelSums } from "./simd.ts";

/**
 * Quantizes rows of a `kn` matrix to the values of `quantizeBlocks` for a DequantizeLinear (opset
 * 21) on axis 0: signed INT4 or INT8 if the format is symmetric, else UINT4 or UINT8 with zero
 * points. `into` comes from `createDequantizeLinearBlocks`.
 */
export function quantizeLinearBlocks(
  tile: RowTile,
  matrix: BlockMatrix,
  into: QuantizedBlocks,
  sums: ErrorSums,
): void {
  const { shape, format } = matrix;
  const writeValues = format.bits === 4 ? writeFourBitValues : writeEightBitValues;
  clearKernelSums();
  quantizeStrips(tile, matrix, (strip) => {
    writeValues(strip, { columns: shape.n, format }, into.quantizedValues);
    writeScalesAndZeroPoints(strip, shape.n, into, format);
  });
  addKernelSums(sums);
}

interface ColumnLayout {
  readonly columns: number;
  readonly format: BlockFormat;
}

/** Turns the values of a strip, which are column by column, into rows of two values a byte. */
function writeFourBitValues(
  strip: BlockStrip,
  { columns, format }: ColumnLayout,
  quantizedValues: Uint8Array,
): void {
  const { firstOutput, outputs, firstBlock, blocks, depth } = strip;
  const columnBytes = (blocks * format.blockSize) / 2;
  const flip = format.symmetric ? 8 : 0;
  for (let row = 0; row < depth; row++) {
    let from = memoryOffsets.codes + (row >> 1);
    const shift = (row & 1) * 4;
    const start = (firstBlock * format.blockSize + row) * columns + firstOutput;
    // The index can go beyond 32 bits; half bytes counted from the row's first byte cannot.
    const bytes = quantizedValues.subarray(Math.floor(start / 2));
    const first = start % 2;
    for (let half = first; half < first + outputs; half++, from += columnBytes) {
      const code = ((Number(simdBytes[from]) >> shift) & 15) ^ flip;
      bytes[half >> 1] = Number(bytes[half >> 1]) | (code << ((half & 1) * 4));
    }
  }
}

function writeEightBitValues(
  strip: BlockStrip,
  { columns, format }: ColumnLayout,
  quantizedValues: Uint8Array,
): void {
  const { firstOutput, outputs, firstBlock, blocks, depth } = strip;
  const columnBytes = blocks * format.blockSize;
  const flip = format.symmetric ? 128 : 0;
  for (let row = 0; row < depth; row++) {
    let from = memoryOffsets.codes + row;
    const start = (firstBlock * format.blockSize + row) * columns + firstOutput;
    for (let to = start; to < start + outputs; to++, from += columnBytes)
      quantizedValues[to] = Number(simdBytes[from]) ^ flip;
  }
}

function writeScalesAndZeroPoints(
  strip: BlockStrip,
  columns: number,
  into: QuantizedBlocks,
  { bits, symmetric }: BlockFormat,
): void {
  const { firstOutput, outputs, firstBlock, blocks } = strip;
  const { scales, zeroPoints } = into;
  for (let block = 0; block < blocks; block++) {
    for (let output = 0; output < outputs; output++) {
      const from = output * blocks + block;
      const to = (firstBlock + block) * columns + firstOutput + output;
      scales[to] = Number(simdFloats[memoryOffsets.first / 4 + from]);
      if (symmetric) continue;
      const point = Number(simdBytes[memoryOffsets.second + from]);
      if (bits === 8) zeroPoints[to] = point;
      else zeroPoints[to >> 1] = Number(zeroPoints[to >> 1]) | (point << ((to & 1) * 4));
    }
  }
}
