import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type MatrixPanel, panelRectangles } from "./matrix-panels.ts";
import type { OutputWriter } from "./output-writer.ts";
import { createBlocksByLayout, makeSigned, writeBlocks } from "./run-block-task.ts";
import { releaseBuffers, SourceReader } from "./source-reader.ts";
import type { BlockTask, MomentsFile, RoundedTask, TaskResult } from "./weight-task.ts";
import { addErrors, emptyErrorSums } from "../../evaluate/error-metrics.ts";
import {
  createFittedBlocks,
  fitBlocks,
  type FittedBlocks,
  restoreValues,
} from "../kernels/fit-blocks.ts";
import { findShifts } from "../kernels/find-shifts.ts";
import { factorMoments } from "../kernels/input-factor.ts";
import { momentSegments } from "../kernels/input-moments.ts";
import { packFittedBlocks } from "../kernels/pack-fitted-blocks.ts";
import { MatrixMemory } from "../kernels/second-order.ts";

type FittedTask = BlockTask & { readonly moments: MomentsFile };
export type FittedWeight = FittedTask | RoundedTask;

/** Outputs that are rounded at once. */
const panelOutputs = 512;

interface OutputRange {
  readonly firstOutput: number;
  readonly outputs: number;
}

/**
 * Rounds a matrix so that its products with its inputs, whose moments are known, change least. The
 * codes of the whole matrix are in memory meanwhile.
 */
export function* runFittedTask(
  task: FittedTask,
  output: OutputWriter,
): Generator<number, TaskResult> {
  const { weight, shape, format } = task;
  using reader = new SourceReader(task);
  const fitted = yield* fitOnce(task, reader);
  const sums = emptyErrorSums();
  for (const range of outputRanges(shape.n)) {
    const { outputs } = range;
    const values = readValues(reader, shape, { firstInput: 0, inputs: shape.k, ...range });
    const part = sliceFittedBlocks(fitted, shape.n, range);
    addErrors(sums, values, restoreValues(part, { outputs, inputs: shape.k, format }));
    writeOutputs(task, range, { part, output });
    yield ((1 - fittingShare) * task.sourceBytes * outputs) / shape.n;
  }
  releaseBuffers(fitted.codes, fitted.scales, fitted.zeroPoints);
  const rejection = sums.notFinite ? "holds values that are not finite" : undefined;
  return { weight, sums, rejection };
}

/** Rounds a matrix, or reads what an earlier task has made of the same weight and moments. */
function* fitOnce(task: FittedWeight, reader: SourceReader): Generator<number, FittedBlocks> {
  const { weight, shape, format, moments } = task;
  const fitted = createFittedBlocks(shape.n, shape.k, format);
  const parts = [fitted.scales, fitted.zeroPoints, fitted.codes].map(
    ({ buffer }) => new Uint8Array(buffer),
  );
  const { bits, blockSize, symmetric } = format;
  const file = `${moments.path}-${weight}-${bits}-${blockSize}-${symmetric}`;
  if (existsSync(file)) {
    const bytes = readFileSync(file);
    let start = 0;
    for (const part of parts) {
      part.set(bytes.subarray(start, start + part.length));
      start += part.length;
    }
    yield fittingShare * task.sourceBytes;
    return fitted;
  }
  yield* fitSegments(task, reader, fitted);
  if (task.kind === "rounded") writeFileSync(file, Buffer.concat(parts));
  return fitted;
}

/** Writes what is left of a matrix when runFittedTask has rounded it. */
export function* runRoundedTask(
  task: RoundedTask,
  output: OutputWriter,
): Generator<number, TaskResult> {
  const { weight, shape, format, outputs } = task;
  using reader = new SourceReader(task);
  const fitted = yield* fitOnce(task, reader);
  for (const range of outputRanges(shape.n)) {
    const part = sliceFittedBlocks(fitted, shape.n, range);
    const rounded = restoreValues(part, { outputs: range.outputs, inputs: shape.k, format });
    output.writeRectangle(outputs.values, rounded, {
      bits: 32,
      rowElements: shape.n,
      firstRow: 0,
      firstElement: range.firstOutput,
      rows: shape.k,
      elements: range.outputs,
    });
  }
  releaseBuffers(fitted.codes, fitted.scales, fitted.zeroPoints);
  return { weight, sums: emptyErrorSums(), rejection: undefined };
}

/** Memory that fitting takes: codes of the matrix, and of a segment moments, factor and feedback. */
export function fittingBytes({ shape: { k, n }, moments }: FittedWeight): number {
  const [{ size } = { size: 0 }] = momentSegments(k);
  const sumBytes = size * (size + (moments.errors?.all ?? 0)) * 4;
  const panelBytes = (4 + 4 + 4 + 1) * (panelOutputs + 16) * size + 4 * panelOutputs * k;
  return n * k + sumBytes + size * size * (8 + 4) + panelBytes;
}

/** Share of the work that the fitting is. */
const fittingShare = 0.9;

function* outputRanges(all: number): Generator<OutputRange> {
  for (let firstOutput = 0; firstOutput < all; firstOutput += panelOutputs) {
    yield { firstOutput, outputs: Math.min(panelOutputs, all - firstOutput) };
  }
}

/** The part of a matrix's codes and parameters that some outputs have. */
function sliceFittedBlocks(
  { codes, scales, zeroPoints }: FittedBlocks,
  all: number,
  range: OutputRange,
): FittedBlocks {
  const { outputs } = range;
  const part = {
    codes: new Uint8Array((codes.length / all) * outputs),
    scales: new Float32Array((scales.length / all) * outputs),
    zeroPoints: new Uint8Array((zeroPoints.length / all) * outputs),
  };
  copyColumns(codes, all, range, part.codes);
  copyColumns(scales, all, range, part.scales);
  copyColumns(zeroPoints, all, range, part.zeroPoints);
  return part;
}

function copyColumns<T extends Uint8Array | Float32Array>(
  from: T,
  all: number,
  { firstOutput, outputs }: OutputRange,
  into: T,
): void {
  for (let row = 0; row * all < from.length; row++) {
    const start = row * all + firstOutput;
    into.set(from.subarray(start, start + outputs), row * outputs);
  }
}

function writeOutputs(
  task: FittedTask,
  range: OutputRange,
  { part, output }: { part: FittedBlocks; output: OutputWriter },
): void {
  const { shape, format, layout } = task;
  const { outputs } = range;
  const into = createBlocksByLayout[layout]({ ...shape, n: outputs }, format);
  packFittedBlocks(part, { outputs, inputs: shape.k, format, layout }, into);
  if (layout === "rows" && format.symmetric) makeSigned(into.quantizedValues, format.bits);
  const panel = { firstInput: 0, inputs: shape.k, ...range };
  writeBlocks(task, into, panelRectangles(task, 0, panel), output);
}

/** The values of a panel: [input, output]. The next call may overwrite them. */
function readValues(
  reader: SourceReader,
  { order, k, n }: BlockTask["shape"],
  { firstInput, inputs, firstOutput, outputs }: MatrixPanel,
): Float32Array {
  if (order === "kn") {
    const start = firstInput * n + firstOutput;
    return reader.read({ start, rows: inputs, columns: outputs, pitch: n });
  }
  const start = firstOutput * k + firstInput;
  const rows = reader.read({ start, rows: outputs, columns: inputs, pitch: k });
  const values = new Float32Array(inputs * outputs);
  for (let output = 0; output < outputs; output++) {
    for (let input = 0; input < inputs; input++) {
      values[input * outputs + output] = Number(rows[output * inputs + input]);
    }
  }
  return values;
}

function* fitSegments(
  task: FittedWeight,
  reader: SourceReader,
  fitted: FittedBlocks,
): Generator<number> {
  const { shape, format, moments: file, sourceBytes } = task;
  const memory = new MatrixMemory();
  for (const { first, size, pitch, sums } of readMoments(file, shape.k)) {
    const { rows, damping } = file;
    const factor = factorMoments(memory, { sums, pitch, inputs: size, rows, damping });
    if (factor === undefined) throw new TypeError("Moments that were written are not finite");
    const segment = { allOutputs: shape.n, firstInput: first, inputs: size, format };
    for (const range of outputRanges(shape.n)) {
      const start = memory.allocate(0);
      const values = readValues(reader, shape, { ...segment, ...range });
      const products = file.errors && { sums, pitch, firstError: size + file.errors.first };
      const shifts = products && findShifts(memory, factor, products, range);
      fitBlocks(memory, factor, { ...segment, ...range, values, shifts }, fitted);
      memory.free(start);
      const share = (range.outputs / shape.n) * (size / shape.k);
      yield fittingShare * share * sourceBytes;
    }
    memory.free(0);
  }
}

function* readMoments({ path, errors }: MomentsFile, inputs: number) {
  const bytes = readFileSync(path);
  let offset = bytes.byteOffset;
  for (const segment of momentSegments(inputs)) {
    const pitch = segment.size + (errors?.all ?? 0);
    const length = segment.size * pitch;
    yield { ...segment, pitch, sums: new Float32Array(bytes.buffer, offset, length) };
    offset += length * 4;
  }
}
