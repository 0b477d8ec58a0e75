import type { MatrixMemory } from "./second-order.ts";

/** What tells how errors of some inputs are made up for by those after them. */
export interface InputFactor {
  /** Of inputs, padded to a multiple of four. */
  readonly size: number;
  /** Address of the rows: row j has for each input before j what its error adds to input j. */
  readonly feedback: number;
  /** Address of the same, row j having what each input after j gets of j's error. */
  readonly ahead: number;
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
  /** Sums of the products of each two inputs, a row for each; the upper triangle counts. */
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
  const matrix = memory.allocate(size * size * 8);
  const feedback = memory.allocate(size * size * 4);
  const ahead = memory.allocate(size * size * 4);
  const order = orderInputs(moments);
  if (!fillReversed(memory.doubles(matrix, size * size), moments, order)) return undefined;
  if (memory.kernels.factorize(matrix, size) === 0) return undefined;
  const factor = memory.doubles(matrix, size * size);
  const costs = new Float64Array(inputs);
  const rows = memory.floats(feedback, size * size).fill(0);
  const columns = memory.floats(ahead, size * size).fill(0);
  for (let input = 0; input < inputs; input++) {
    const column = size - 1 - input;
    const diagonal = Number(factor[column * size + column]);
    costs[Number(order[input])] = diagonal * diagonal;
    for (let before = 0; before < input; before++) {
      const row = size - 1 - before;
      const share = Number(factor[row * size + column]) / diagonal;
      rows[input * size + before] = share;
      columns[before * size + input] = share;
    }
  }
  return { size, feedback, ahead, order, costs };
}

/**
 * Writes the lower triangle of the damped moments with the inputs in reverse, so that a Cholesky
 * factorization has U from the last input on. @returns whether all are finite
 */
function fillReversed(
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
  matrix.fill(0);
  for (let index = 0; index < size; index++) matrix[index * size + index] = added;
  for (let first = 0; first < inputs; first++) {
    const row = (size - 1 - first) * size;
    const input = Number(order[first]);
    for (let second = first; second < inputs; second++) {
      const other = Number(order[second]);
      const index = Math.min(input, other) * pitch + Math.max(input, other);
      const product = Number(sums[index]);
      matrix[row + size - 1 - second] = first === second ? product + added : product * kept;
    }
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
