import type { ErrorSums } from "../../evaluate/error-sums.ts";
import type { BlockCodes, BlockFormat, MatrixShape, RowTile } from "./block-format.ts";
import { type BlockStrip, quantizeStrips } from "./block-strips.ts";
import { clearSums, places, simdBytes, simdFloats, takeSums } from "./simd.ts";

/**
 * Quantizes rows of a `kn` matrix for a DequantizeLinear (opset 21) on axis 0 with the codes of `quantizeBlocks`: signed
 * INT4 or INT8 where the format is symmetric, else UINT4 or UINT8 with zero points. `into` comes from `createLinearBlockCodes`.
 */
export function quantizeLinearBlocks(
  tile: RowTile,
  matrix: { readonly shape: MatrixShape; readonly format: BlockFormat },
  into: BlockCodes,
  sums: ErrorSums,
): void {
  const { shape, format } = matrix;
  const putCodes = format.bits === 4 ? putHalfBytes : putBytes;
  clearSums();
  quantizeStrips(tile, matrix, (strip) => {
    putCodes(strip, { columns: shape.n, format }, into.codes);
    putBlockRows(strip, shape.n, into, format);
  });
  takeSums(sums);
}

interface LinearLayout {
  readonly columns: number;
  readonly format: BlockFormat;
}

/** Turns the codes of a strip, which lie column by column, into rows of two codes a byte. */
function putHalfBytes(strip: BlockStrip, { columns, format }: LinearLayout, codes: Uint8Array): void {
  const { firstOutput, outputs, firstBlock, blocks, depth } = strip;
  const columnBytes = (blocks * format.blockSize) / 2;
  const flip = format.symmetric ? 8 : 0;
  for (let row = 0; row < depth; row++) {
    let from = places.codes + (row >> 1);
    const shift = (row & 1) * 4;
    const start = (firstBlock * format.blockSize + row) * columns + firstOutput;
    // Whole indexes can go beyond 32 bits; the half bytes from the row's first whole byte on cannot.
    const bytes = codes.subarray(Math.floor(start / 2));
    const first = start % 2;
    for (let half = first; half < first + outputs; half++, from += columnBytes) {
      const code = ((Number(simdBytes[from]) >> shift) & 15) ^ flip;
      bytes[half >> 1] = Number(bytes[half >> 1]) | (code << ((half & 1) * 4));
    }
  }
}

function putBytes(strip: BlockStrip, { columns, format }: LinearLayout, codes: Uint8Array): void {
  const { firstOutput, outputs, firstBlock, blocks, depth } = strip;
  const columnBytes = blocks * format.blockSize;
  const flip = format.symmetric ? 128 : 0;
  for (let row = 0; row < depth; row++) {
    let from = places.codes + row;
    const start = (firstBlock * format.blockSize + row) * columns + firstOutput;
    for (let to = start; to < start + outputs; to++, from += columnBytes) codes[to] = Number(simdBytes[from]) ^ flip;
  }
}

function putBlockRows(strip: BlockStrip, columns: number, into: BlockCodes, { bits, symmetric }: BlockFormat): void {
  const { firstOutput, outputs, firstBlock, blocks } = strip;
  const { scales, zeroPoints } = into;
  for (let block = 0; block < blocks; block++) {
    for (let output = 0; output < outputs; output++) {
      const from = output * blocks + block;
      const to = (firstBlock + block) * columns + firstOutput + output;
      scales[to] = Number(simdFloats[places.first / 4 + from]);
      if (symmetric) continue;
      const point = Number(simdBytes[places.second + from]);
      if (bits === 8) zeroPoints[to] = point;
      else zeroPoints[to >> 1] = Number(zeroPoints[to >> 1]) | (point << ((to & 1) * 4));
    }
  }
}
