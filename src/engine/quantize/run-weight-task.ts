import { closeSync, openSync, writeSync } from "node:fs";
import { emptyErrorSums } from "../evaluate/error-sums.ts";
import { readExactlySync } from "../onnx/read-exactly.ts";
import type { TensorSource } from "../onnx/read-tensor.ts";
import type { Destination } from "../onnx/write-model.ts";
import { createChannelRanges, widenChannelRanges } from "./kernels/channel-ranges.ts";
import { float16ToFloat32, float32ToFloat16 } from "./kernels/convert-floats.ts";
import { affineParameters } from "./kernels/affine-parameters.ts";
import type { AffineParameters } from "./kernels/affine-parameters.ts";
import { quantizeLinear } from "./kernels/quantize-linear.ts";
import {
  createMatMulNBitsBlocks,
  createGatherBlocks,
  createDequantizeLinearBlocks,
} from "./kernels/block-format.ts";
import { quantizeBlocks } from "./kernels/quantize-blocks.ts";
import { quantizeLinearBlocks } from "./kernels/quantize-linear-blocks.ts";
import type { BlockTask, HalfTask, AffineTask, TaskResult, WeightTask } from "./weight-task.ts";

/** Values that are converted at once: 1 MB of float32. A thread can be stopped between tiles. */
const tileValues = 256 * 1024;

/** A task with the places that its results go to. */
export interface PlacedTask {
  readonly task: WeightTask;
  /** Destinations by payload index. */
  readonly destinations: ReadonlyMap<number, readonly Destination[]>;
}

/** Does a task tile by tile. Yields the source bytes of each tile that was done, so that the caller can stop or go on. */
export function* runWeightTask({ task, destinations }: PlacedTask): Generator<number, TaskResult> {
  using sink = new OutputWriter(destinations);
  switch (task.kind) {
    case "linear":
      return yield* runAffineTask(task, sink);
    case "blocks":
      return yield* runBlockTask(task, sink);
    case "half":
      return yield* runHalfTask(task, sink);
  }
}

/** Writes results to their destinations. */
class OutputWriter {
  readonly #destinations: PlacedTask["destinations"];
  readonly #files = new Map<string, number>();

  constructor(destinations: PlacedTask["destinations"]) {
    this.#destinations = destinations;
  }

  write(payload: number, content: ArrayBufferView, offset = 0): void {
    const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    for (const destination of this.#destinations.get(payload) ?? []) {
      const file = this.#files.get(destination.path) ?? openSync(destination.path, "r+");
      this.#files.set(destination.path, file);
      for (let done = 0; done < bytes.length;) {
        done += writeSync(
          file,
          bytes,
          done,
          bytes.length - done,
          destination.offset + offset + done,
        );
      }
    }
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) closeSync(file);
  }
}

function* runAffineTask(task: AffineTask, sink: OutputWriter): Generator<number, TaskResult> {
  const sums = emptyErrorSums();
  const ranges = createChannelRanges(task);
  for (const tile of readTiles(task)) {
    widenChannelRanges(tile, task, ranges);
    yield 0;
  }
  const parameters = affineParameters(ranges, task.format);
  const half = task.halfScales ? roundScales(parameters) : undefined;
  const rejection = ranges.notFinite
    ? "holds values that are not finite"
    : findScaleUnderflow(parameters);
  if (rejection !== undefined) return { weight: task.weight, sums, rejection };
  const transposed = task.transposeColumns === undefined ? undefined : new Int8Array(task.elements);
  const into = new Int8Array(Math.min(tileValues, task.elements));
  for (const tile of readTiles(task)) {
    const part = into.subarray(0, tile.values.length);
    quantizeLinear(tile, { layout: task, parameters }, part, sums);
    if (transposed === undefined) sink.write(task.outputs.quantizedValues, part, tile.start);
    else
      writeTransposed(part, { start: tile.start, columns: task.transposeColumns ?? 1 }, transposed);
    yield (tile.values.length / task.elements) * task.sourceBytes;
  }
  if (transposed !== undefined) {
    sink.write(task.outputs.quantizedValues, transposed);
    releaseBuffers(transposed);
  }
  releaseBuffers(into);
  sink.write(task.outputs.scales, half ?? parameters.scales);
  if (task.outputs.zeroPoints !== undefined)
    sink.write(task.outputs.zeroPoints, parameters.zeroPoints);
  return { weight: task.weight, sums, rejection: undefined };
}

function* runBlockTask(task: BlockTask, sink: OutputWriter): Generator<number, TaskResult> {
  const { shape, format, layout, outputs } = task;
  const sums = emptyErrorSums();
  const into = createBlocksByLayout[layout](shape, format);
  const quantize = layout === "columns" ? quantizeLinearBlocks : quantizeBlocks;
  const rowValues = shape.order === "kn" ? shape.n : shape.k;
  const unit = shape.order === "kn" ? 2 * format.blockSize : 1;
  const rows = Math.max(1, Math.floor(tileValues / rowValues / unit)) * unit;
  for (const { values, start } of readTiles(task, rows * rowValues)) {
    quantize({ values, firstRow: start / rowValues }, task, into, sums);
    yield (values.length / task.elements) * task.sourceBytes;
  }
  if (sums.notFinite)
    return { weight: task.weight, sums, rejection: "holds values that are not finite" };
  if (layout === "rows" && format.symmetric) makeSigned(into.quantizedValues, format.bits);
  sink.write(outputs.quantizedValues, into.quantizedValues);
  sink.write(outputs.scales, task.halfScales ? Float16Array.from(into.scales) : into.scales);
  if (outputs.zeroPoints !== undefined) sink.write(outputs.zeroPoints, into.zeroPoints);
  releaseBuffers(into.quantizedValues, into.scales, into.zeroPoints);
  return { weight: task.weight, sums, rejection: undefined };
}

/** Gives memory back at once. The garbage collector does not feel how much buffers hold, and would let them pile up. */
function releaseBuffers(...arrays: readonly ArrayBufferView[]): void {
  for (const { buffer } of arrays)
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}

function* runHalfTask(task: HalfTask, sink: OutputWriter): Generator<number, TaskResult> {
  const sums = emptyErrorSums();
  const losses = { overflowed: 0, vanished: 0, subnormal: 0 };
  const into = new Uint16Array(Math.min(tileValues, task.elements));
  for (const { values, start } of readTiles(task)) {
    const part = into.subarray(0, values.length);
    float32ToFloat16(values, part, losses, sums);
    sink.write(task.outputs.values, part, start * 2);
    yield (values.length / task.elements) * task.sourceBytes;
  }
  releaseBuffers(into);
  const rejection =
    losses.overflowed > 0 ? "has values beyond the range of half precision" : undefined;
  return { weight: task.weight, sums, rejection };
}

const createBlocksByLayout = {
  matmul: createMatMulNBitsBlocks,
  gather: createGatherBlocks,
  columns: createDequantizeLinearBlocks,
  rows: createGatherBlocks,
} as const satisfies Record<BlockTask["layout"], typeof createMatMulNBitsBlocks>;

/** Makes codes whose middle is the zero point signed ones. */
function makeSigned(quantizedValues: Uint8Array, bits: 4 | 8): void {
  const flip = bits === 4 ? 0x88 : 0x80;
  for (let index = 0; index < quantizedValues.length; index++)
    quantizedValues[index] = (quantizedValues[index] ?? 0) ^ flip;
}

/** Rounds scales to half precision, in place and as what is to be written. */
function roundScales({ scales }: AffineParameters): Float16Array {
  const half = Float16Array.from(scales);
  scales.set(half);
  return half;
}

function findScaleUnderflow({ scales }: AffineParameters): string | undefined {
  return scales.includes(0) ? "holds values too small for a half-precision scale" : undefined;
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

/** The values of a weight as float32, a tile at a time. Each tile is good until the next one is asked for. */
function* readTiles(
  task: WeightTask,
  size = tileValues,
): Generator<{ values: Float32Array; start: number }> {
  const { source, sourceType, elements } = task;
  const width = sourceType === "float32" ? 4 : 2;
  const tileSize = Math.min(size, elements);
  const bytes = new Uint8Array(tileSize * width);
  const values =
    sourceType === "float32" ? new Float32Array(bytes.buffer) : new Float32Array(tileSize);
  using reader = new SourceReader(source);
  for (let start = 0; start < elements; start += tileSize) {
    const count = Math.min(tileSize, elements - start);
    reader.read(bytes.subarray(0, count * width), start * width);
    const tile = values.subarray(0, count);
    if (sourceType === "float16") float16ToFloat32(new Uint16Array(bytes.buffer, 0, count), tile);
    yield { values: tile, start };
  }
  releaseBuffers(bytes, values);
}

/** Reads ranges of a weight's raw bytes. */
class SourceReader {
  readonly #source: TensorSource;
  readonly #descriptor: number | undefined;

  constructor(source: TensorSource) {
    this.#source = source;
    this.#descriptor = source.kind === "file" ? openSync(source.path, "r") : undefined;
  }

  read(into: Uint8Array, start: number): void {
    if (this.#source.kind === "memory")
      into.set(this.#source.bytes.subarray(start, start + into.length));
    else if (this.#descriptor !== undefined)
      readExactlySync(this.#descriptor, into, this.#source.offset + start);
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}
