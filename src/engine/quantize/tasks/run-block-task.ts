import { emptyErrorSums } from "../../evaluate/error-sums.ts";
import {
  createDequantizeLinearBlocks,
  createGatherBlocks,
  createMatMulNBitsBlocks,
} from "../kernels/block-format.ts";
import type { QuantizedBlocks } from "../kernels/block-format.ts";
import { quantizeBlocks } from "../kernels/quantize-blocks.ts";
import { quantizeLinearBlocks } from "../kernels/quantize-linear-blocks.ts";
import type { OutputWriter } from "./output-writer.ts";
import { readTiles, tileValues } from "./read-tiles.ts";
import { releaseBuffers } from "./release-buffers.ts";
import type { BlockTask, TaskResult } from "./weight-task.ts";

const createBlocksByLayout = {
  matmul: createMatMulNBitsBlocks,
  gather: createGatherBlocks,
  columns: createDequantizeLinearBlocks,
  rows: createGatherBlocks,
} as const satisfies Record<BlockTask["layout"], typeof createMatMulNBitsBlocks>;

export function* runBlockTask(
  task: BlockTask,
  output: OutputWriter,
): Generator<number, TaskResult> {
  const { weight, shape, format, layout } = task;
  const sums = emptyErrorSums();
  const into = createBlocksByLayout[layout](shape, format);
  const quantize = layout === "columns" ? quantizeLinearBlocks : quantizeBlocks;
  const rowValues = shape.order === "kn" ? shape.n : shape.k;
  for (const { values, start } of readTiles(task, tileRows(task, rowValues) * rowValues)) {
    quantize({ values, firstRow: start / rowValues }, task, into, sums);
    yield (values.length / task.elements) * task.sourceBytes;
  }
  if (sums.notFinite) return { weight, sums, rejection: "holds values that are not finite" };
  if (layout === "rows" && format.symmetric) makeSigned(into.quantizedValues, format.bits);
  writeBlocks(task, into, output);
  return { weight, sums, rejection: undefined };
}

/** Rows of a tile: in a `kn` matrix, a multiple of two blocks. */
function tileRows({ shape, format }: BlockTask, rowValues: number): number {
  const unit = shape.order === "kn" ? 2 * format.blockSize : 1;
  return Math.max(1, Math.floor(tileValues / rowValues / unit)) * unit;
}

/** Turns values around a middle zero point into signed ones. */
function makeSigned(quantizedValues: Uint8Array, bits: 4 | 8): void {
  const flip = bits === 4 ? 0x88 : 0x80;
  for (let index = 0; index < quantizedValues.length; index++) {
    quantizedValues[index] = (quantizedValues[index] ?? 0) ^ flip;
  }
}

function writeBlocks(
  { halfScales, outputs }: BlockTask,
  { quantizedValues, scales, zeroPoints }: QuantizedBlocks,
  output: OutputWriter,
): void {
  output.write(outputs.quantizedValues, quantizedValues);
  output.write(outputs.scales, halfScales ? Float16Array.from(scales) : scales);
  if (outputs.zeroPoints !== undefined) output.write(outputs.zeroPoints, zeroPoints);
  releaseBuffers(quantizedValues, scales, zeroPoints);
}
