import type { ErrorSums } from "../../evaluate/error-sums.ts";
import { type BlockCodes, type BlockFormat, blocksOf, type MatrixShape, type RowTile } from "./block-format.ts";
import { type BlockStrip, quantizeStrips } from "./block-strips.ts";
import { clearSums, places, simdBytes, simdFloats, simdWords, takeSums } from "./simd.ts";

/**
 * Quantizes rows of a matrix into the layout that `into` was made for (`createBlockCodes`, or `createGatherBlockCodes` for an
 * `nk` matrix), round to nearest, bit for bit as ONNX Runtime's own quantizer does, and adds the weight's error to `sums`.
 */
export function quantizeBlocks(
  tile: RowTile,
  matrix: { readonly shape: MatrixShape; readonly format: BlockFormat },
  into: BlockCodes,
  sums: ErrorSums,
): void {
  const { shape, format } = matrix;
  const blocks = blocksOf(shape.k, format);
  const rowBytes = into.codes.length / shape.n;
  const blobBytes = (format.blockSize * format.bits) / 8;
  const putCodes = shape.order === "kn" ? putWords(into.codes) : putBytes(into.codes);
  clearSums();
  quantizeStrips(tile, matrix, (strip) => {
    putCodes(strip, { rowBytes, blobBytes });
    putScales(strip, blocks, into.scales);
    if (format.symmetric) return;
    if (format.bits === 4) putHalfBytePoints(strip, blocks, into.zeroPoints);
    else putBytePoints(strip, blocks, into.zeroPoints);
  });
  takeSums(sums);
}

interface CodeSizes {
  readonly rowBytes: number;
  readonly blobBytes: number;
}

/** Copies short runs of codes, a few words for each column. */
function putWords(codes: Uint8Array): (strip: BlockStrip, sizes: CodeSizes) => void {
  const words = new Uint32Array(codes.buffer, codes.byteOffset, codes.length / 4);
  return ({ firstOutput, outputs, firstBlock, blocks }, { rowBytes, blobBytes }) => {
    const run = (blocks * blobBytes) / 4;
    let from = places.codes / 4;
    for (let output = 0; output < outputs; output++) {
      let to = ((firstOutput + output) * rowBytes + firstBlock * blobBytes) / 4;
      for (const end = from + run; from < end; from++, to++) words[to] = Number(simdWords[from]);
    }
  };
}

/** Copies long runs of codes, a row's each, as far as the row goes. */
function putBytes(codes: Uint8Array): (strip: BlockStrip, sizes: CodeSizes) => void {
  return ({ firstOutput, outputs, firstBlock, blocks }, { rowBytes, blobBytes }) => {
    const stagedBytes = blocks * blobBytes;
    const run = Math.min(stagedBytes, rowBytes - firstBlock * blobBytes);
    if (run === rowBytes && run === stagedBytes) {
      codes.set(simdBytes.subarray(places.codes, places.codes + outputs * run), firstOutput * rowBytes);
      return;
    }
    for (let output = 0; output < outputs; output++) {
      const from = places.codes + output * stagedBytes;
      codes.set(simdBytes.subarray(from, from + run), (firstOutput + output) * rowBytes + firstBlock * blobBytes);
    }
  };
}

function putScales(
  { firstOutput, outputs, firstBlock, blocks }: BlockStrip,
  rowBlocks: number,
  scales: Float32Array,
): void {
  let from = places.first / 4;
  for (let output = 0; output < outputs; output++) {
    let to = (firstOutput + output) * rowBlocks + firstBlock;
    for (const end = from + blocks; from < end; from++, to++) scales[to] = Number(simdFloats[from]);
  }
}

function putBytePoints(strip: BlockStrip, rowBlocks: number, points: Uint8Array): void {
  const { firstOutput, outputs, firstBlock, blocks } = strip;
  let from: number = places.second;
  for (let output = 0; output < outputs; output++) {
    let to = (firstOutput + output) * rowBlocks + firstBlock;
    for (const end = from + blocks; from < end; from++, to++) points[to] = Number(simdBytes[from]);
  }
}

/** Two zero points a byte. A spare half byte at a row's end gets the middle code, as ONNX Runtime's quantizer leaves it. */
function putHalfBytePoints(strip: BlockStrip, rowBlocks: number, points: Uint8Array): void {
  const { firstOutput, outputs, firstBlock, blocks } = strip;
  const rowBytes = Math.ceil(rowBlocks / 2);
  const spare = firstBlock + blocks === rowBlocks && rowBlocks % 2 === 1;
  for (let output = 0; output < outputs; output++) {
    const from = places.second + output * blocks;
    const row = (firstOutput + output) * rowBytes;
    for (let block = 0; block < blocks; block++) {
      const at = firstBlock + block;
      const to = row + (at >> 1);
      points[to] = Number(points[to]) | (Number(simdBytes[from + block]) << ((at & 1) * 4));
    }
    if (spare) points[row + rowBytes - 1] = Number(points[row + rowBytes - 1]) | 0x80;
  }
}
