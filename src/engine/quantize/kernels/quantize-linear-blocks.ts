import type { ErrorSums } from "../../evaluate/error-sums.ts";
import { blocksOf, type BlockCodes, type BlockFormat, type MatrixShape, type RowTile } from "./block-format.ts";
import { putCode } from "./quantize-blocks.ts";
import { type BlockValues, roundBlock } from "./round-block.ts";

/**
 * Quantizes rows of a `kn` matrix for a DequantizeLinear (opset 21) on axis 0 with the codes of `quantizeBlocks`: signed
 * INT4 or INT8 where the format is symmetric, else UINT4 or UINT8 with zero points. `into` comes from `createLinearBlockCodes`.
 */
export function quantizeLinearBlocks(
  tile: RowTile,
  { shape, format }: { shape: MatrixShape; format: BlockFormat },
  into: BlockCodes,
  sums: ErrorSums,
): void {
  const { n } = shape;
  const { bits, blockSize, symmetric } = format;
  const rows = tile.values.length / n;
  const codes = new Uint8Array(blockSize);
  const block: BlockValues = { values: tile.values, start: 0, stride: n, count: 0 };
  const flip = symmetric ? 2 ** (bits - 1) : 0;
  const first = tile.firstRow / blockSize;
  for (let b = first; b < blocksOf(tile.firstRow + rows, format); b++) {
    const row = (b - first) * blockSize;
    block.count = Math.min(blockSize, rows - row);
    for (let output = 0; output < n; output++) {
      block.start = row * n + output;
      const { scale, zeroPoint } = roundBlock(block, format, codes, sums);
      into.scales[b * n + output] = scale;
      if (!symmetric) putCode(into.zeroPoints, b * n + output, zeroPoint, bits);
      for (let index = 0; index < block.count; index++) {
        putCode(into.codes, (b * blockSize + index) * n + output, Number(codes[index]) ^ flip, bits);
      }
    }
  }
}
