import type { InputFactor } from "./input-factor.ts";
import type { MatrixMemory } from "./second-order.ts";

/** Sums of the products of inputs with errors, as InputMoments has them. */
interface ErrorProducts {
  /** A row for each input. */
  readonly sums: Float32Array;
  readonly pitch: number;
  /** Where the errors of the matrix's first output are in a row. */
  readonly firstError: number;
}

/** Positions that are solved for at once. */
const blockSize = 32;

/**
 * What rounding adds to values to make up for errors that inputs have from the products before them,
 * beside errors of the rounding itself. With E what these errors change in a product of the inputs X,
 * the least squares of E + X(w - q) are found as if w were w + H⁻¹XᵀE: the asymmetric calibration of
 * GPTAQ (Li et al., 2025, arXiv 2504.02692). In the form of `factorMoments`, whose feedback counts
 * errors from w, input j gets row j of D⁻¹(I + U)⁻¹XᵀE.
 * @returns [output, position in the factor's order], each row as long as the factor's
 */
export function findShifts(
  memory: MatrixMemory,
  factor: InputFactor,
  products: ErrorProducts,
  { firstOutput, outputs }: { readonly firstOutput: number; readonly outputs: number },
): Float32Array {
  const { size, order, costs } = factor;
  const rows = Math.ceil(outputs / 4) * 4;
  const solved = memory.allocate(rows * size * 4);
  const sums = memory.allocate(rows * blockSize * 4);
  const values = memory.floats(solved, rows * size).fill(0);
  for (const [position, input] of order.entries()) {
    const from = input * products.pitch + products.firstError + firstOutput;
    for (let output = 0; output < outputs; output++) {
      values[output * size + position] = Number(products.sums[from + output]);
    }
  }
  const rowBytes = size * 4;
  for (let end = size; end > 0;) {
    const start = Math.floor((end - 1) / blockSize) * blockSize;
    const [columns, count] = [end - start, size - end];
    const [from, after] = [factor.ahead + start * rowBytes + end * 4, solved + end * 4];
    memory.kernels.multiplyRows(after, rowBytes, rows, from, rowBytes, columns, count, sums);
    solveBlock(memory, factor, { values, outputs, start, columns, sums });
    end = start;
  }
  const shifts = values.slice(0, outputs * size);
  for (const [position, input] of order.entries()) {
    const cost = Number(costs[input]);
    for (let output = 0; output < outputs; output++) {
      const index = output * size + position;
      shifts[index] = Number(shifts[index]) / cost;
    }
  }
  memory.free(solved);
  return shifts;
}

interface SolvedBlock {
  /** [output, position]. */
  readonly values: Float32Array;
  readonly outputs: number;
  readonly start: number;
  readonly columns: number;
  /** Address of what positions after the block take: [output, column]. */
  readonly sums: number;
}

function solveBlock(
  memory: MatrixMemory,
  { size, ahead }: InputFactor,
  { values, outputs, start, columns, sums }: SolvedBlock,
): void {
  const taken = memory.floats(sums, outputs * columns);
  const factors = memory.floats(ahead, size * size);
  for (let output = 0; output < outputs; output++) {
    const row = output * size + start;
    for (let column = columns - 1; column >= 0; column--) {
      let value = Number(values[row + column]) - Number(taken[output * columns + column]);
      const from = (start + column) * size + start;
      for (let after = column + 1; after < columns; after++) {
        value -= Number(factors[from + after]) * Number(values[row + after]);
      }
      values[row + column] = value;
    }
  }
}
