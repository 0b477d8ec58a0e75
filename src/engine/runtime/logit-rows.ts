import { type TensorData, tensorNumbers } from "./tensor-data.ts";

/** Output of the scores of each token of the vocabulary. */
export const logitsName = "logits";

/** What a model predicts at a position, as the predictions of others are compared with it. */
export interface PreparedRow {
  /** Exponentials of the logits, relative to the largest. */
  readonly weights: Float32Array;
  /** Of the weights. */
  readonly sum: number;
  /** Mean of the logarithms of the probabilities. */
  readonly mean: number;
  /** Logarithm of the sum of the logits' exponentials. */
  readonly logSum: number;
}

/** The rows of logits, one for each position. */
export function readLogitRows(logits: TensorData, positions: number): Float32Array[] {
  const numbers = tensorNumbers(logits);
  const floats = numbers instanceof Float32Array ? numbers : Float32Array.from(numbers);
  const size = floats.length / positions;
  return Array.from({ length: positions }, (_, position) =>
    floats.subarray(position * size, (position + 1) * size),
  );
}

/** Does for a row what each comparison with it needs. */
export function prepareRow(row: Float32Array): PreparedRow {
  const largest = findLargest(row);
  const weights = new Float32Array(row.length);
  let [sum, product] = [0, 0];
  for (let at = 0; at < row.length; at++) {
    const value = Number(row[at]) - largest;
    weights[at] = Math.exp(value);
    // As it was rounded: others are compared with what is kept.
    const weight = Number(weights[at]);
    sum += weight;
    product += weight * value;
  }
  const logSum = Math.log(sum);
  return { weights, sum, mean: product / sum - logSum, logSum: largest + logSum };
}

/**
 * The Kullback-Leibler divergence of a row's predictions from those of a prepared one, nats. Rows are
 * long: each exponential is computed once. Rows of another length have none.
 */
export function compareRow(
  { weights, sum, mean }: PreparedRow,
  row: Float32Array,
): { divergence: number; logSum: number } {
  const largest = findLargest(row);
  let [otherSum, product] = [0, 0];
  for (let at = 0; at < weights.length; at++) {
    const value = Number(row[at]) - largest;
    // Rounded as those of the prepared row are: a row has no divergence from itself.
    otherSum += Math.fround(Math.exp(value));
    product += Number(weights[at]) * value;
  }
  const logSum = Math.log(otherSum);
  return { divergence: mean - (product / sum - logSum), logSum: largest + logSum };
}

function findLargest(row: Float32Array): number {
  let largest = -Infinity;
  for (let at = 0; at < row.length; at++) {
    const value = Number(row[at]);
    if (value > largest) largest = value;
  }
  return largest;
}
