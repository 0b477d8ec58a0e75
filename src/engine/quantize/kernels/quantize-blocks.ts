import type { ErrorSums } from "./error-sums.ts";
import { countBlocks } from "./block-format.ts";
import type { BlockMatrix, QuantizedBlocks, RowTile } from "./block-format.ts";
import { type BlockStrip, quantizeStrips } from "./block-strips.ts";
import {
  clearKernelSums,
  memoryOffsets,
  simdBytes,
  simdFloats,
  simdWords,
  addKernelSums,
} from "./simd.ts";

/**
 * Quantizes rows of a matrix, round to nearest, bit for bit as ONNX Runtime's own quantizer does,
 * and adds the weight's error to `sums`. `into` comes from `createMatMulNBitsBlocks` or, for an
 * `nk` matrix, `createGatherBlocks`.
 */
export function quantizeBlocks(
  tile: RowTile,
  matrix: BlockMatrix,
  into: QuantizedBlocks,
  sums: ErrorSums,
): void {
  const { shape, format } = matrix;
  const blocks = countBlocks(shape.k, format);
  const rowBytes = into.quantizedValues.length / shape.n;
  const blobBytes = (format.blockSize * format.bits) / 8;
  const createWriter = shape.order === "kn" ? createWordWriter : createRowWriter;
  const writeValues = createWriter(into.quantizedValues);
  clearKernelSums();
  quantizeStrips(tile, matrix, (strip) => {
    writeValues(strip, { rowBytes, blobBytes });
    writeScales(strip, blocks, into.scales);
    if (format.symmetric) return;
    if (format.bits === 4) writeFourBitZeroPoints(strip, blocks, into.zeroPoints);
    else writeEightBitZeroPoints(strip, blocks, into.zeroPoints);
  });
  addKernelSums(sums);
}

interface PackedSizes {
  readonly rowBytes: number;
  readonly blobBytes: number;
}

/** Copies short runs of values, a few words for each column. */
function createWordWriter(
  quantizedValues: Uint8Array,
): (strip: BlockStrip, sizes: PackedSizes) => void {
  const words = new Uint32Array(
    quantizedValues.buffer,
    quantizedValues.byteOffset,
    quantizedValues.length / 4,
  );
  return ({ firstOutput, outputs, firstBlock, blocks }, { rowBytes, blobBytes }) => {
    const run = (blocks * blobBytes) / 4;
    let from = memoryOffsets.codes / 4;
    for (let output = 0; output < outputs; output++) {
      let to = ((firstOutput + output) * rowBytes + firstBlock * blobBytes) / 4;
      for (const end = from + run; from < end; from++, to++) words[to] = Number(simdWords[from]);
    }
  };
}

/** Copies long runs of values, one for each row, up to the row's end. */
function createRowWriter(
  quantizedValues: Uint8Array,
): (strip: BlockStrip, sizes: PackedSizes) => void {
  return ({ firstOutput, outputs, firstBlock, blocks }, { rowBytes, blobBytes }) => {
    const stagedBytes = blocks * blobBytes;
    const run = Math.min(stagedBytes, rowBytes - firstBlock * blobBytes);
    if (run === rowBytes && run === stagedBytes) {
      quantizedValues.set(
        simdBytes.subarray(memoryOffsets.codes, memoryOffsets.codes + outputs * run),
        firstOutput * rowBytes,
      );
      return;
    }
    for (let output = 0; output < outputs; output++) {
      const from = memoryOffsets.codes + output * stagedBytes;
      quantizedValues.set(
        simdBytes.subarray(from, from + run),
        (firstOutput + output) * rowBytes + firstBlock * blobBytes,
      );
    }
  };
}

function writeScales(
  { firstOutput, outputs, firstBlock, blocks }: BlockStrip,
  rowBlocks: number,
  scales: Float32Array,
): void {
  let from = memoryOffsets.first / 4;
  for (let output = 0; output < outputs; output++) {
    let to = (firstOutput + output) * rowBlocks + firstBlock;
    for (const end = from + blocks; from < end; from++, to++) scales[to] = Number(simdFloats[from]);
  }
}

function writeEightBitZeroPoints(strip: BlockStrip, rowBlocks: number, points: Uint8Array): void {
  const { firstOutput, outputs, firstBlock, blocks } = strip;
  let from: number = memoryOffsets.second;
  for (let output = 0; output < outputs; output++) {
    let to = (firstOutput + output) * rowBlocks + firstBlock;
    for (const end = from + blocks; from < end; from++, to++) points[to] = Number(simdBytes[from]);
  }
}

/**
 * Two zero points a byte. A spare half byte at a row's end gets the middle value, as ONNX Runtime's
 * quantizer leaves it.
 */
function writeFourBitZeroPoints(strip: BlockStrip, rowBlocks: number, points: Uint8Array): void {
  const { firstOutput, outputs, firstBlock, blocks } = strip;
  const rowBytes = Math.ceil(rowBlocks / 2);
  const spare = firstBlock + blocks === rowBlocks && rowBlocks % 2 === 1;
  for (let output = 0; output < outputs; output++) {
    const from = memoryOffsets.second + output * blocks;
    const row = (firstOutput + output) * rowBytes;
    for (let block = 0; block < blocks; block++) {
      const at = firstBlock + block;
      const to = row + (at >> 1);
      points[to] = Number(points[to]) | (Number(simdBytes[from + block]) << ((at & 1) * 4));
    }
    if (spare) points[row + rowBytes - 1] = Number(points[row + rowBytes - 1]) | 0x80;
  }
}
