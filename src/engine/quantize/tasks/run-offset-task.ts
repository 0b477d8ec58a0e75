import { panelRectangles } from "./matrix-panels.ts";
import type { OutputWriter } from "./output-writer.ts";
import { writeBlocks } from "./run-block-task.ts";
import { releaseBuffers, SourceReader } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";
import type { OffsetTask, TaskResult } from "./weight-task.ts";
import { emptyErrorSums } from "../../evaluate/error-metrics.ts";
import { createMatMulNBitsBlocks } from "../kernels/block-format.ts";
import { quantizeBlocks } from "../kernels/quantize-blocks.ts";
import { separateOffsets } from "../kernels/separate-offsets.ts";

/** Quantizes rows some at a time, each with the offsets of its blocks after it. */
export function* runOffsetTask(
  task: OffsetTask,
  output: OutputWriter,
  limits: TileLimits,
): Generator<number, TaskResult> {
  const { weight, shape, format, elements, sourceBytes } = task;
  const { order, k, n } = shape;
  const columns = elements / n;
  const sums = emptyErrorSums();
  using reader = new SourceReader(task);
  const mostRows = Math.max(1, Math.floor(limits.values / k));
  for (let first = 0; first < n; first += mostRows) {
    const rows = Math.min(mostRows, n - first);
    const read = reader.read({ start: first * columns, rows, columns, pitch: columns });
    const { values, offsetScale } = separateOffsets(read, { columns, rows }, format);
    const matrix = { shape: { order, k, n: rows }, format };
    const into = createMatMulNBitsBlocks(matrix.shape, format);
    quantizeBlocks({ values, firstRow: 0 }, matrix, into, sums);
    releaseBuffers(values);
    const blocks = into.scales.length / rows;
    for (let row = 0; row < rows; row++) {
      const scales = into.scales.subarray(row * blocks, (row + 1) * blocks);
      for (let at = columns / format.blockSize; at < blocks; at++) {
        scales[at] = Number(scales[at]) * offsetScale;
      }
    }
    const panel = { firstInput: 0, inputs: k, firstOutput: first, outputs: rows };
    writeBlocks(task, into, panelRectangles(task, 0, panel), output);
    yield ((rows * columns) / elements) * sourceBytes;
  }
  const rejection = sums.notFinite ? "holds values that are not finite" : undefined;
  return { weight, sums, rejection };
}
