import { type BlockFormat, countBlocks } from "./block-format.ts";
import type { InputFactor } from "./input-factor.ts";
import type { MatrixMemory } from "./second-order.ts";

/** Codes and parameters of a matrix. */
export interface FittedBlocks {
  /** A code for each value: [input, output]. */
  readonly codes: Uint8Array;
  /** [block, output]. */
  readonly scales: Float32Array;
  /** [block, output]. */
  readonly zeroPoints: Uint8Array;
}

export function createFittedBlocks(
  outputs: number,
  inputs: number,
  format: BlockFormat,
): FittedBlocks {
  const blocks = countBlocks(inputs, format);
  return {
    codes: new Uint8Array(inputs * outputs),
    scales: new Float32Array(blocks * outputs),
    zeroPoints: new Uint8Array(blocks * outputs),
  };
}

interface MatrixPart {
  /** Of these outputs, from `firstInput` on: [input, output]. */
  readonly values: Float32Array;
  readonly firstOutput: number;
  readonly outputs: number;
  /** Of the whole matrix. */
  readonly allOutputs: number;
  /** The inputs that the factor is of: a multiple of the block before them. */
  readonly firstInput: number;
  readonly inputs: number;
  /** Address of what is added to values before they are rounded, as findShifts has it. */
  readonly shifts?: number | undefined;
  readonly format: BlockFormat;
}

/** Parts of a block's range that scales are tried for. */
const shrinkages = [1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7];

/** Floats from a row of outputs to the next, such that rows do not fall on the same cache lines. */
export function rowPitch(outputs: number): number {
  return Math.ceil(outputs / 8) * 8 + 16;
}

/** Addresses of rows of outputs, and the bytes of a row. */
interface Rows {
  readonly columns: number;
  readonly pitch: number;
  readonly values: number;
  /** [block]. */
  readonly scales: number;
  /** [block], in float32. */
  readonly points: number;
}

/**
 * Rounds a segment of a matrix by GPTQ, as `factorMoments` describes it. A block's scale is the one
 * with which the products' error is least, of some that clip its largest values. Memory that is
 * allocated is the caller's to free.
 */
export function fitBlocks(
  memory: MatrixMemory,
  factor: InputFactor,
  part: MatrixPart,
  into: FittedBlocks,
): void {
  const { outputs, inputs, format, values } = part;
  const pitch = rowPitch(outputs);
  const [columns, bytes] = [Math.ceil(outputs / 8) * 8, pitch * 4];
  const blocks = countBlocks(inputs, format);
  const rowsAt = memory.allocate(inputs * bytes);
  const errors = memory.allocate(inputs * bytes);
  const sums = part.shifts ?? memory.allocate(inputs * bytes);
  const [scales, points] = [memory.allocate(blocks * bytes), memory.allocate(blocks * bytes)];
  const order = memory.allocate(inputs * 4);
  const codes = memory.allocate(inputs * pitch);
  memory.integers(order, inputs).set(factor.order);
  const copied = memory.floats(rowsAt, inputs * pitch).fill(0);
  for (let input = 0; input < inputs; input++) {
    copied.set(values.subarray(input * outputs, (input + 1) * outputs), input * pitch);
  }
  if (part.shifts === undefined) memory.floats(sums, inputs * pitch).fill(0);
  chooseScales(memory, factor, part, { columns, pitch: bytes, values: rowsAt, scales, points });
  const { addProducts, roundInputs } = memory.kernels;
  const [rowBytes, highest] = [factor.size * 4, 2 ** format.bits - 1];
  for (let start = 0; start < inputs; start += roundedAtOnce) {
    const count = Math.min(roundedAtOnce, inputs - start);
    const feedback = factor.feedback + start * rowBytes;
    const own = start * bytes;
    addProducts(feedback, rowBytes, 4, count, start, errors, columns, bytes, sums + own);
    const rounded = [order + start * 4, count, columns, bytes, rowsAt, sums + own, errors + own];
    const parameters = [scales, points, format.blockSize, highest];
    roundInputs(...rounded, feedback + start * 4, rowBytes, ...parameters, codes);
  }
  copyFitted(memory, { scales, points, codes, pitch }, part, into);
}

/** Inputs that are rounded one after the other before all later ones get their errors. */
const roundedAtOnce = 32;

function chooseScales(
  memory: MatrixMemory,
  { costs }: InputFactor,
  { inputs, format: { bits, blockSize, symmetric } }: MatrixPart,
  { columns, pitch, values, scales, points }: Rows,
): void {
  const [costsAt, tried] = [memory.allocate(inputs * 4), memory.allocate(shrinkages.length * 4)];
  memory.floats(costsAt, inputs).set(costs);
  memory.floats(tried, shrinkages.length).set(shrinkages);
  for (let start = 0; start < inputs; start += blockSize) {
    const count = Math.min(blockSize, inputs - start);
    const block = (start / blockSize) * pitch;
    const rows = [values + start * pitch, pitch, count, columns, costsAt + start * 4];
    const choices = [tried, shrinkages.length, 2 ** bits - 1, Number(symmetric)];
    memory.kernels.chooseScales(...rows, ...choices, scales + block, points + block);
  }
}

interface FittedRows {
  readonly scales: number;
  readonly points: number;
  readonly codes: number;
  /** Values from a row to the next. */
  readonly pitch: number;
}

function copyFitted(
  memory: MatrixMemory,
  rows: FittedRows,
  { firstInput, firstOutput, inputs, outputs, allOutputs, format }: MatrixPart,
  into: FittedBlocks,
): void {
  const { pitch } = rows;
  const blocks = countBlocks(inputs, format);
  const firstBlock = firstInput / format.blockSize;
  const codes = memory.bytes(rows.codes, inputs * pitch);
  for (let input = 0; input < inputs; input++) {
    const part = codes.subarray(input * pitch, input * pitch + outputs);
    into.codes.set(part, (firstInput + input) * allOutputs + firstOutput);
  }
  const [scales, points] = [rows.scales, rows.points].map((at) =>
    memory.floats(at, blocks * pitch),
  );
  if (scales === undefined || points === undefined) throw new TypeError("There are no scales");
  for (let block = 0; block < blocks; block++) {
    const [from, to] = [block * pitch, (firstBlock + block) * allOutputs + firstOutput];
    into.scales.set(scales.subarray(from, from + outputs), to);
    into.zeroPoints.set(points.subarray(from, from + outputs), to);
  }
}

/** The values that codes stand for, some inputs of all outputs: [input, output]. */
export function restoreValues(
  { codes, scales, zeroPoints }: FittedBlocks,
  { outputs, inputs, format }: { outputs: number; inputs: number; format: BlockFormat },
): Float32Array {
  const values = new Float32Array(inputs * outputs);
  for (let input = 0; input < inputs; input++) {
    const block = Math.floor(input / format.blockSize) * outputs;
    const row = input * outputs;
    for (let output = 0; output < outputs; output++) {
      const steps = Number(codes[row + output]) - Number(zeroPoints[block + output]);
      values[row + output] = steps * Number(scales[block + output]);
    }
  }
  return values;
}
