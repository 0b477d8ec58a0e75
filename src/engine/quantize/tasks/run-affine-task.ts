import { emptyErrorSums } from "../../evaluate/error-sums.ts";
import type { ErrorSums } from "../../evaluate/error-sums.ts";
import { affineParameters } from "../kernels/affine-parameters.ts";
import type { AffineParameters } from "../kernels/affine-parameters.ts";
import { createChannelRanges, widenChannelRanges } from "../kernels/channel-ranges.ts";
import type { ChannelRanges } from "../kernels/channel-ranges.ts";
import { quantizeLinear } from "../kernels/quantize-linear.ts";
import type { OutputWriter } from "./output-writer.ts";
import { readTiles, tileValues } from "./read-tiles.ts";
import { releaseBuffers } from "./release-buffers.ts";
import type { AffineTask, TaskResult } from "./weight-task.ts";

/** Reads a weight twice: for its ranges, and to quantize it. */
export function* runAffineTask(
  task: AffineTask,
  output: OutputWriter,
): Generator<number, TaskResult> {
  const { weight, outputs } = task;
  const sums = emptyErrorSums();
  const ranges = yield* measureRanges(task);
  const parameters = affineParameters(ranges, task.format);
  const halfScales = task.halfScales ? roundScales(parameters) : undefined;
  const rejection = findRejection(ranges, parameters);
  if (rejection !== undefined) return { weight, sums, rejection };
  yield* quantizeTiles(task, parameters, { output, sums });
  output.write(outputs.scales, halfScales ?? parameters.scales);
  if (outputs.zeroPoints !== undefined) output.write(outputs.zeroPoints, parameters.zeroPoints);
  return { weight, sums, rejection: undefined };
}

function* measureRanges(task: AffineTask): Generator<number, ChannelRanges> {
  const ranges = createChannelRanges(task);
  for (const tile of readTiles(task)) {
    widenChannelRanges(tile, task, ranges);
    yield 0;
  }
  return ranges;
}

/** Rounds scales to half precision, in place and as what is to be written. */
function roundScales({ scales }: AffineParameters): Float16Array {
  const half = Float16Array.from(scales);
  scales.set(half);
  return half;
}

function findRejection(
  { notFinite }: ChannelRanges,
  { scales }: AffineParameters,
): string | undefined {
  if (notFinite) return "holds values that are not finite";
  return scales.includes(0) ? "holds values too small for a half-precision scale" : undefined;
}

function* quantizeTiles(
  task: AffineTask,
  parameters: AffineParameters,
  { output, sums }: { output: OutputWriter; sums: ErrorSums },
): Generator<number> {
  const { elements, sourceBytes, transposeColumns, outputs } = task;
  const columns = transposeColumns ?? 1;
  const transposed = transposeColumns === undefined ? undefined : new Int8Array(elements);
  const into = new Int8Array(Math.min(tileValues, elements));
  for (const tile of readTiles(task)) {
    const part = into.subarray(0, tile.values.length);
    quantizeLinear(tile, { layout: task, parameters }, part, sums);
    if (transposed === undefined) output.write(outputs.quantizedValues, part, tile.start);
    else writeTransposed(part, { start: tile.start, columns }, transposed);
    yield (tile.values.length / elements) * sourceBytes;
  }
  if (transposed !== undefined) {
    output.write(outputs.quantizedValues, transposed);
    releaseBuffers(transposed);
  }
  releaseBuffers(into);
}

function writeTransposed(
  part: Int8Array,
  { start, columns }: { start: number; columns: number },
  into: Int8Array,
): void {
  const rows = into.length / columns;
  let row = Math.floor(start / columns);
  let column = start % columns;
  for (let index = 0; index < part.length; index++) {
    into[column * rows + row] = part[index] ?? 0;
    column += 1;
    if (column === columns) {
      column = 0;
      row += 1;
    }
  }
}
