import { type BlockFormat, countBlocks } from "./block-format.ts";
import type { InputFactor } from "./input-factor.ts";
import type { MatrixMemory } from "./second-order.ts";

/** Codes and parameters of a matrix. */
export interface FittedBlocks {
  /** A code for each value: [output, input]. */
  readonly codes: Uint8Array;
  /** [output, block]. */
  readonly scales: Float32Array;
  /** [output, block]. */
  readonly zeroPoints: Uint8Array;
}

export function createFittedBlocks(
  outputs: number,
  inputs: number,
  format: BlockFormat,
): FittedBlocks {
  const blocks = countBlocks(inputs, format);
  return {
    codes: new Uint8Array(outputs * inputs),
    scales: new Float32Array(outputs * blocks),
    zeroPoints: new Uint8Array(outputs * blocks),
  };
}

interface MatrixPart {
  /** Of these outputs: [output, input]. */
  readonly values: Float32Array;
  readonly firstOutput: number;
  readonly outputs: number;
  /** Of the whole matrix. */
  readonly inputs: number;
  /** The inputs that the factor is of: from here on. */
  readonly firstInput: number;
  readonly segmentInputs: number;
  /** What is added to values before they are rounded, as findShifts has it. */
  readonly shifts?: Float32Array | undefined;
  readonly format: BlockFormat;
}

/** Parts of a block's range that scales are tried for. */
const shrinkages = [1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7];

/**
 * Rounds a segment of a matrix by GPTQ, as `factorMoments` describes it. A block's scale is the one
 * with which the products' error is least, of some that clip its largest values.
 */
export function fitBlocks(
  memory: MatrixMemory,
  factor: InputFactor,
  part: MatrixPart,
  into: FittedBlocks,
): void {
  const { outputs, segmentInputs, format } = part;
  const { blockSize } = format;
  const rows = Math.ceil(outputs / 4) * 4;
  chooseScales(memory, factor, part, into);
  const errors = memory.allocate(rows * factor.size * 4);
  const sums = memory.allocate(rows * blockSize * 4);
  memory.floats(errors, rows * factor.size).fill(0);
  for (let start = 0; start < segmentInputs; start += blockSize) {
    const columns = Math.min(blockSize, segmentInputs - start);
    const padded = Math.ceil(columns / 2) * 2;
    const rowBytes = factor.size * 4;
    const from = factor.feedback + start * rowBytes;
    memory.kernels.multiplyRows(errors, rowBytes, rows, from, rowBytes, padded, start, sums);
    roundColumns(part, into, {
      order: factor.order.subarray(start, start + columns),
      start,
      sums: memory.floats(sums, rows * padded),
      sumPitch: padded,
      feedback: memory.floats(factor.feedback, factor.size ** 2),
      pitch: factor.size,
      errors: memory.floats(errors, rows * factor.size),
    });
  }
  memory.free(errors);
}

/** Some inputs of every output, with what those rounded before them add to their values. */
interface RoundedColumns {
  readonly order: Uint32Array;
  readonly start: number;
  readonly sums: Float32Array;
  readonly sumPitch: number;
  readonly feedback: Float32Array;
  /** Of the feedback and of the errors. */
  readonly pitch: number;
  readonly errors: Float32Array;
}

function roundColumns(part: MatrixPart, into: FittedBlocks, columns: RoundedColumns): void {
  const { values, outputs, firstOutput, inputs, firstInput, shifts, format } = part;
  const { order, start, sums, sumPitch, feedback, pitch, errors } = columns;
  const { codes, scales, zeroPoints } = into;
  const blocks = countBlocks(inputs, format);
  const highest = 2 ** format.bits - 1;
  for (let output = 0; output < outputs; output++) {
    const errorRow = output * pitch + start;
    const codeRow = (firstOutput + output) * inputs;
    for (let column = 0; column < order.length; column++) {
      const input = firstInput + Number(order[column]);
      const value = Number(values[output * inputs + input]);
      let wanted = value + Number(sums[output * sumPitch + column]);
      if (shifts !== undefined) wanted += Number(shifts[errorRow + column]);
      const row = (start + column) * pitch + start;
      for (let before = 0; before < column; before++) {
        wanted += Number(errors[errorRow + before]) * Number(feedback[row + before]);
      }
      const block = (firstOutput + output) * blocks + Math.floor(input / format.blockSize);
      const [scale, zeroPoint] = [Number(scales[block]), Number(zeroPoints[block])];
      const code = Math.min(highest, Math.max(0, Math.round(wanted / scale) + zeroPoint));
      codes[codeRow + input] = code;
      errors[errorRow + column] = value - (code - zeroPoint) * scale;
    }
  }
}

function chooseScales(
  memory: MatrixMemory,
  { costs }: InputFactor,
  { values, outputs, firstOutput, inputs, firstInput, segmentInputs, format }: MatrixPart,
  { scales, zeroPoints }: FittedBlocks,
): void {
  const blocks = countBlocks(inputs, format);
  const [valuesAt, costsAt] = [memory.allocate(values.length * 4), memory.allocate(inputs * 4)];
  memory.floats(valuesAt, values.length).set(values);
  memory.floats(costsAt, segmentInputs).set(costs);
  for (let output = 0; output < outputs; output++) {
    for (let start = 0; start < segmentInputs; start += format.blockSize) {
      const count = Math.min(segmentInputs - start, format.blockSize);
      const first = output * inputs + firstInput + start;
      const index = (firstOutput + output) * blocks + (firstInput + start) / format.blockSize;
      const block = { values, first, count };
      const choice = chooseScale(block, format, ({ scale, zeroPoint }) => {
        const [from, weighed] = [valuesAt + first * 4, costsAt + start * 4];
        const highest = 2 ** format.bits - 1;
        return memory.kernels.roundingLoss(from, weighed, count, scale, zeroPoint, highest);
      });
      scales[index] = choice.scale;
      zeroPoints[index] = choice.zeroPoint;
    }
  }
  memory.free(valuesAt);
}

interface ScaleChoice {
  readonly scale: number;
  readonly zeroPoint: number;
}

interface Block {
  readonly values: Float32Array;
  readonly first: number;
  readonly count: number;
}

function chooseScale(
  { values, first, count }: Block,
  format: BlockFormat,
  lossOf: (choice: ScaleChoice) => number,
): ScaleChoice {
  let [low, high] = [0, 0];
  for (let index = first; index < first + count; index++) {
    const value = Number(values[index]);
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const middle = 2 ** (format.bits - 1);
  let best: ScaleChoice = { scale: 1, zeroPoint: format.symmetric ? middle : 0 };
  let least = Infinity;
  for (const shrinkage of shrinkages) {
    const choice = scaleOf(low * shrinkage, high * shrinkage, format);
    if (choice === undefined) return best;
    const loss = lossOf(choice);
    if (loss >= least) continue;
    least = loss;
    best = choice;
  }
  return best;
}

/** As ONNX Runtime's quantizer has them; undefined for a block of zeros. */
function scaleOf(low: number, high: number, format: BlockFormat): ScaleChoice | undefined {
  const codes = 2 ** format.bits;
  if (format.symmetric) {
    const largest = -low > high ? low : high;
    const scale = Math.fround(-largest / (codes / 2));
    return scale === 0 ? undefined : { scale, zeroPoint: codes / 2 };
  }
  const scale = Math.fround((high - low) / (codes - 1));
  if (scale === 0) return undefined;
  const zeroPoint = Math.min(codes - 1, Math.max(0, Math.round(-low / scale)));
  return { scale, zeroPoint };
}

/** The values that the codes of some outputs stand for: [output, input]. */
export function restoreValues(
  { codes, scales, zeroPoints }: FittedBlocks,
  { outputs, inputs, format }: Pick<MatrixPart, "outputs" | "inputs" | "format">,
): Float32Array {
  const values = new Float32Array(outputs * inputs);
  const blocks = countBlocks(inputs, format);
  for (let output = 0; output < outputs; output++) {
    for (let input = 0; input < inputs; input++) {
      const block = output * blocks + Math.floor(input / format.blockSize);
      const index = output * inputs + input;
      values[index] = (Number(codes[index]) - Number(zeroPoints[block])) * Number(scales[block]);
    }
  }
  return values;
}

/** The part of a matrix's codes and parameters that some outputs have. */
export function sliceFittedBlocks(
  { codes, scales, zeroPoints }: FittedBlocks,
  all: number,
  { firstOutput, outputs }: Pick<MatrixPart, "firstOutput" | "outputs">,
): FittedBlocks {
  const range = ({ length }: Uint8Array | Float32Array): [number, number] => {
    const row = length / all;
    return [firstOutput * row, (firstOutput + outputs) * row];
  };
  return {
    codes: codes.subarray(...range(codes)),
    scales: scales.subarray(...range(scales)),
    zeroPoints: zeroPoints.subarray(...range(zeroPoints)),
  };
}
