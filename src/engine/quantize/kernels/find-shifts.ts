import type { InputFactor } from "./input-factor.ts";
import { rowPitch } from "./fit-blocks.ts";
import type { MatrixMemory } from "./second-order.ts";

/** Sums of the products of inputs with errors. */
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
 * @returns address of float32 rows, as fitBlocks has them: [position in the factor's order, output]
 */
export function findShifts(
  memory: MatrixMemory,
  factor: InputFactor,
  products: ErrorProducts,
  { firstOutput, outputs }: { readonly firstOutput: number; readonly outputs: number },
): number {
  const { size, order, costs } = factor;
  const pitch = rowPitch(outputs);
  const shifts = memory.allocate(size * pitch * 4);
  const values = memory.floats(shifts, size * pitch).fill(0);
  for (const [position, input] of order.entries()) {
    const from = input * products.pitch + products.firstError + firstOutput;
    values.set(products.sums.subarray(from, from + outputs), position * pitch);
  }
  for (let end = order.length; end > 0;) {
    const start = Math.floor((end - 1) / blockSize) * blockSize;
    solveBlock(memory, factor, { shifts, pitch, start, end });
    end = start;
  }
  const solved = memory.floats(shifts, size * pitch);
  for (const [position, input] of order.entries()) {
    const cost = Number(costs[input]);
    for (let index = position * pitch; index < position * pitch + outputs; index++) {
      solved[index] = Number(solved[index]) / cost;
    }
  }
  return shifts;
}

interface SolvedBlock {
  readonly shifts: number;
  readonly pitch: number;
  readonly start: number;
  readonly end: number;
}

/** Takes from some positions what all after them, and those after each of them, are solved to. */
function solveBlock(
  memory: MatrixMemory,
  { size, order, feedback }: InputFactor,
  { shifts, pitch, start, end }: SolvedBlock,
): void {
  const { addProducts } = memory.kernels;
  const inputs = order.length;
  const negated = memory.allocate(blockSize * size * 4);
  const factors = memory.floats(negated, blockSize * size);
  const rows = memory.floats(feedback, size * size);
  for (let after = start + 1; after < inputs; after++) {
    for (let position = start; position < Math.min(after, end); position++) {
      factors[(position - start) * size + after] = -Number(rows[after * size + position]);
    }
  }
  const [bytes, factorBytes] = [pitch * 4, size * 4];
  const addLater = (position: number, { count, later }: { count: number; later: number }) => {
    const own = negated + (position - start) * factorBytes + later * 4;
    const [from, to] = [shifts + later * bytes, shifts + position * bytes];
    const others = later === end ? inputs - end : end - later;
    addProducts(own, factorBytes, 4, count, others, from, pitch, bytes, to);
  };
  addLater(start, { count: end - start, later: end });
  for (let position = end - 2; position >= start; position--) {
    addLater(position, { count: 1, later: position + 1 });
  }
  memory.free(negated);
}
