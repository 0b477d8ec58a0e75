import { closeSync, openSync, writeSync } from "node:fs";
import { emptyErrorSums } from "../evaluate/error-sums.ts";
import { readFully } from "../onnx/byte-window.ts";
import type { TensorSource } from "../onnx/read-tensor.ts";
import type { Destination } from "../onnx/write-model.ts";
import { createChannelRanges, widenChannelRanges } from "./kernels/channel-ranges.ts";
import { float16ToFloat32, float32ToFloat16 } from "./kernels/convert-floats.ts";
import { linearCodes } from "./kernels/linear-codes.ts";
import type { LinearCodes } from "./kernels/linear-codes.ts";
import { quantizeLinear } from "./kernels/quantize-linear.ts";
import { createBlockCodes, createGatherBlockCodes, createLinearBlockCodes } from "./kernels/block-format.ts";
import { quantizeBlocks } from "./kernels/quantize-blocks.ts";
import { quantizeLinearBlocks } from "./kernels/quantize-linear-blocks.ts";
import type { BlockTask, HalfTask, LinearTask, TaskResult, WeightTask } from "./weight-task.ts";

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
  using sink = new Sink(destinations);
  switch (task.kind) {
    case "linear":
      return yield* runLinear(task, sink);
    case "blocks":
      return yield* runBlocks(task, sink);
    case "half":
      return yield* runHalf(task, sink);
  }
}

/** Writes results to their destinations. */
class Sink {
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
        done += writeSync(file, bytes, done, bytes.length - done, destination.offset + offset + done);
      }
    }
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) closeSync(file);
  }
}

function* runLinear(task: LinearTask, sink: Sink): Generator<number, TaskResult> {
  const sums = emptyErrorSums();
  const ranges = createChannelRanges(task);
  for (const tile of tilesOf(task)) {
    widenChannelRanges(tile, task, ranges);
    yield 0;
  }
  const codes = linearCodes(ranges, task.format);
  const half = task.halfScales ? roundScales(codes) : undefined;
  const rejection = ranges.notFinite ? "holds values that are not finite" : underflow(codes);
  if (rejection !== undefined) return { weight: task.weight, sums, rejection };
  const transposed = task.transposeColumns === undefined ? undefined : new Int8Array(task.elements);
  const into = new Int8Array(Math.min(tileValues, task.elements));
  for (const tile of tilesOf(task)) {
    const part = into.subarray(0, tile.values.length);
    quantizeLinear(tile, { layout: task, codes }, part, sums);
    if (transposed === undefined) sink.write(task.outputs.codes, part, tile.start);
    else transposeInto(part, { start: tile.start, columns: task.transposeColumns ?? 1 }, transposed);
    yield (tile.values.length / task.elements) * task.sourceBytes;
  }
  if (transposed !== undefined) {
    sink.write(task.outputs.codes, transposed);
    free(transposed);
  }
  free(into);
  sink.write(task.outputs.scales, half ?? codes.scales);
  if (task.outputs.zeroPoints !== undefined) sink.write(task.outputs.zeroPoints, codes.zeroPoints);
  return { weight: task.weight, sums, rejection: undefined };
}

function* runBlocks(task: BlockTask, sink: Sink): Generator<number, TaskResult> {
  const { shape, format, layout, outputs } = task;
  const sums = emptyErrorSums();
  const into = blockRoom[layout](shape, format);
  const quantize = layout === "columns" ? quantizeLinearBlocks : quantizeBlocks;
  const rowValues = shape.order === "kn" ? shape.n : shape.k;
  const unit = shape.order === "kn" ? 2 * format.blockSize : 1;
  const rows = Math.max(1, Math.floor(tileValues / rowValues / unit)) * unit;
  for (const { values, start } of tilesOf(task, rows * rowValues)) {
    quantize({ values, firstRow: start / rowValues }, task, into, sums);
    yield (values.length / task.elements) * task.sourceBytes;
  }
  if (sums.notFinite) return { weight: task.weight, sums, rejection: "holds values that are not finite" };
  if (layout === "rows" && format.symmetric) makeSigned(into.codes, format.bits);
  sink.write(outputs.codes, into.codes);
  sink.write(outputs.scales, task.halfScales ? Float16Array.from(into.scales) : into.scales);
  if (outputs.zeroPoints !== undefined) sink.write(outputs.zeroPoints, into.zeroPoints);
  free(into.codes, into.scales, into.zeroPoints);
  return { weight: task.weight, sums, rejection: undefined };
}

/** Gives memory back at once. The garbage collector does not feel how much buffers hold, and would let them pile up. */
function free(...arrays: readonly ArrayBufferView[]): void {
  for (const { buffer } of arrays) if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}

function* runHalf(task: HalfTask, sink: Sink): Generator<number, TaskResult> {
  const sums = emptyErrorSums();
  const losses = { overflowed: 0, vanished: 0, subnormal: 0 };
  const into = new Uint16Array(Math.min(tileValues, task.elements));
  for (const { values, start } of tilesOf(task)) {
    const part = into.subarray(0, values.length);
    float32ToFloat16(values, part, losses, sums);
    sink.write(task.outputs.codes, part, start * 2);
    yield (values.length / task.elements) * task.sourceBytes;
  }
  free(into);
  const rejection = losses.overflowed > 0 ? "has values beyond the range of half precision" : undefined;
  return { weight: task.weight, sums, rejection };
}

const blockRoom = {
  matmul: createBlockCodes,
  gather: createGatherBlockCodes,
  columns: createLinearBlockCodes,
  rows: createGatherBlockCodes,
} as const satisfies Record<BlockTask["layout"], typeof createBlockCodes>;

/** Makes codes whose middle is the zero point signed ones. */
function makeSigned(codes: Uint8Array, bits: 4 | 8): void {
  const flip = bits === 4 ? 0x88 : 0x80;
  for (let index = 0; index < codes.length; index++) codes[index] = (codes[index] ?? 0) ^ flip;
}

/** Rounds scales to half precision, in place and as what is to be written. */
function roundScales({ scales }: LinearCodes): Float16Array {
  const half = Float16Array.from(scales);
  scales.set(half);
  return half;
}

function underflow({ scales }: LinearCodes): string | undefined {
  return scales.includes(0) ? "holds values too small for a half-precision scale" : undefined;
}

function transposeInto(part: Int8Array, { start, columns }: { start: number; columns: number }, into: Int8Array): void {
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
function* tilesOf(task: WeightTask, size = tileValues): Generator<{ values: Float32Array; start: number }> {
  const { source, sourceType, elements } = task;
  const width = sourceType === "float32" ? 4 : 2;
  const room = Math.min(size, elements);
  const bytes = new Uint8Array(room * width);
  const values = sourceType === "float32" ? new Float32Array(bytes.buffer) : new Float32Array(room);
  using reader = new SourceReader(source);
  for (let start = 0; start < elements; start += room) {
    const count = Math.min(room, elements - start);
    reader.read(bytes.subarray(0, count * width), start * width);
    const tile = values.subarray(0, count);
    if (sourceType === "float16") float16ToFloat32(new Uint16Array(bytes.buffer, 0, count), tile);
    yield { values: tile, start };
  }
  free(bytes, values);
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
    if (this.#source.kind === "memory") into.set(this.#source.bytes.subarray(start, start + into.length));
    else if (this.#descriptor !== undefined) readFully(this.#descriptor, into, this.#source.offset + start);
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}
