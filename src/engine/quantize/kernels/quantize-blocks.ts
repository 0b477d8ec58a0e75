import type { ErrorSums } from "../../evaluate/error-sums.ts";
import { blocksOf, type BlockCodes, type BlockFormat, type MatrixShape, type RowTile } from "./block-format.ts";
import { type BlockValues, roundBlock } from "./round-block.ts";

/**
 * Quantizes rows of a matrix into the layout that `into` was made for (`createBlockCodes`, or `createGatherBlockCodes` for an `nk` matrix), round to
 * nearest, bit for bit as ONNX Runtime's own quantizer does, and adds the weight's error to `sums`.
 */
export function quantizeBlocks(
  tile: RowTile,
  { shape, format }: { shape: MatrixShape; format: BlockFormat },
  into: BlockCodes,
  sums: ErrorSums,
): void {
  const { order, k, n } = shape;
  const { bits, blockSize } = format;
  const blocks = blocksOf(k, format);
  const rows = tile.values.length / (order === "kn" ? n : k);
  const rowBytes = into.codes.length / n;
  const zeroPointBytes = into.zeroPoints.length / n;
  const codes = new Uint8Array(blockSize);
  const block: BlockValues = { values: tile.values, start: 0, stride: order === "kn" ? n : 1, count: 0 };
  const [firstN, countN] = order === "kn" ? [0, n] : [tile.firstRow, rows];
  const [firstBlock, endBlock] =
    order === "kn" ? [tile.firstRow / blockSize, blocksOf(tile.firstRow + rows, format)] : [0, blocks];
  for (let output = firstN; output < firstN + countN; output++) {
    for (let b = firstBlock; b < endBlock; b++) {
      block.start = order === "kn" ? (b - firstBlock) * blockSize * n + output : (output - firstN) * k + b * blockSize;
      block.count = Math.min(blockSize, k - b * blockSize);
      const { scale, zeroPoint } = roundBlock(block, format, codes, sums);
      into.scales[output * blocks + b] = scale;
      if (!format.symmetric) putCode(into.zeroPoints, output * zeroPointBytes * (8 / bits) + b, zeroPoint, bits);
      const room = Math.min(blockSize, (rowBytes * 8) / bits - b * blockSize);
      const at = output * rowBytes * (8 / bits) + b * blockSize;
      for (let index = 0; index < room; index++) putCode(into.codes, at + index, Number(codes[index]), bits);
    }
  }
}

/** Stores a code into room that was zero, the first of a byte in its low bits. */
export function putCode(into: Uint8Array, index: number, code: number, bits: 4 | 8): void {
  if (bits === 8) into[index] = code;
  else into[index >> 1] = Number(into[index >> 1]) | (code << ((index & 1) * 4));
}
