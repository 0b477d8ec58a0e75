import type { MatrixMemory } from "./second-order.ts";

/** What tells how errors of some inputs are made up for by those after them. */
export interface InputFactor {
  /** Of inputs, padded to a multiple of four. */
  readonly size: number;
  /** Address of the rows: row j has for each input before j what its error adds to input j. */
  readonly feedback: number;
  /** Inputs in the order in which they are rounded. */
  readonly order: Uint32Array;
  /** What a squared rounding error of each input costs, when those after it make up for it. */
  readonly costs: Float64Array;
}

/**
 * Products of different inputs count less the fewer rows they are known from, as in the estimator
 * of Ledoit and Wolf (2004). On MiniLM in 4 bits, from 64 samples of 64 tokens, 0.4 dB of SQNR.
 */
function shrinkProducts(inputs: number, rows: number): number {
  return 1 - Math.min(mostShrinkage, (shrinkage * inputs) / rows);
}

const shrinkage = 0.25;
const mostShrinkage = 0.25;

export interface Moments {
  /** Sums of the products of each two inputs, a row for each. */
  readonly sums: Float32Array;
  /** Length of a row, which may have more than the inputs. */
  readonly pitch: number;
  readonly inputs: number;
  /** Rows that were summed up. */
  readonly rows: number;
  /** Share of the mean diagonal that is added to it. */
  readonly damping: number;
}

/**
 * Factors the second moments H of a product's inputs as (I + U) D (I + U)ᵀ with U strictly upper
 * triangular. Rounding input j of a weight to nearest after adding Σ (w - q)·U of the inputs before
 * it minimizes the error of the product greedily: the LDLQ form of QuIP (Chee et al., 2023,
 * arXiv 2307.13304, theorem 6), which rounds to the same codes as GPTQ (Frantar et al., 2022, arXiv
 * 2210.17323) and needs no inverse. Inputs that are always zero are left out.
 * @returns undefined where the moments are not finite
 */
export function factorMoments(memory: MatrixMemory, moments: Moments): InputFactor | undefined {
  const { inputs } = moments;
  const size = Math.ceil(inputs / 4) * 4;
  const feedback = memory.allocate(size * size * 4);
  const matrix = memory.allocate(size * size * 8);
  const order = orderInputs(moments);
  const values = memory.doubles(matrix, size * size);
  if (!fillOrdered(values, moments, order)) return undefined;
  if (memory.kernels.factorize(matrix, size) === 0) return undefined;
  const costs = new Float64Array(inputs);
  const rows = memory.floats(feedback, size * size);
  for (let position = 0; position < inputs; position++) {
    const row = position * size;
    const diagonal = Number(values[row + position]);
    costs[Number(order[position])] = diagonal * diagonal;
    for (let before = row; before < row + position; before++) {
      rows[before] = Number(values[before]) / diagonal;
    }
  }
  memory.free(matrix);
  return { size, feedback, order, costs };
}

/** Writes the lower triangle of the damped moments. @returns whether all are finite */
function fillOrdered(
  matrix: Float64Array,
  { sums, pitch, inputs, rows, damping }: Moments,
  order: Uint32Array,
): boolean {
  const kept = shrinkProducts(inputs, rows);
  const size = Math.sqrt(matrix.length);
  let sum = 0;
  for (let input = 0; input < inputs; input++) sum += Number(sums[input * pitch + input]);
  if (!Number.isFinite(sum)) return false;
  const added = sum === 0 ? 1 : (damping * sum) / inputs;
  for (let position = 0; position < size; position++) {
    const row = position * size;
    const from = Number(order[position]) * pitch;
    for (let before = 0; before < position; before++) {
      matrix[row + before] =
        position < inputs ? Number(sums[from + Number(order[before])]) * kept : 0;
    }
    matrix[row + position] =
      added + (position < inputs ? Number(sums[from + Number(order[position])]) : 0);
  }
  return true;
}

/** Inputs with the largest values first: their errors have the most others to make up for them. */
function orderInputs({ sums, pitch, inputs }: Moments): Uint32Array {
  const size = (input: number) => Number(sums[input * pitch + input]);
  return Uint32Array.from({ length: inputs }, (_, index) => index).sort(
    (a, b) => size(b) - size(a) || a - b,
  );
}
