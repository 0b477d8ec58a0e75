import { maxRatio } from "../../contract/jobs/latency.ts";
import type { Accuracy } from "../../contract/jobs/telemetry.ts";
import { type TensorData, tensorNumbers } from "./tensor-data.ts";
import type { TokenWindow } from "./token-windows.ts";

/** Running comparison of two models' predictions of the next token. */
export interface NextTokens {
  /** Negative logarithms of what each model took the tokens that follow for, summed up. */
  originalSurprise: number;
  resultSurprise: number;
  divergence: number;
  /** Positions at which something is predicted, and those whose next token is known. */
  positions: number;
  predicted: number;
  longestWindow: number;
}

export function emptyNextTokens(): NextTokens {
  const surprises = { originalSurprise: 0, resultSurprise: 0, divergence: 0 };
  return { ...surprises, positions: 0, predicted: 0, longestWindow: 0 };
}

/** Adds the logits of a window. Those of another shape count as not finite. */
export function addNextTokens(
  sums: NextTokens,
  window: TokenWindow,
  original: TensorData,
  result: TensorData,
): void {
  const [before, after] = [tensorNumbers(original), tensorNumbers(result)];
  const size = before.length / window.length;
  sums.longestWindow = Math.max(sums.longestWindow, window.length);
  for (let position = 0; position < window.length; position++) {
    const start = position * size;
    const { one, other, divergence } = compareRows(before, after, { start, size });
    sums.divergence += divergence;
    sums.positions += 1;
    const next = window[position + 1];
    if (next === undefined) continue;
    sums.originalSurprise += one - Number(before[start + next]);
    sums.resultSurprise += other - Number(after[start + next]);
    sums.predicted += 1;
  }
}

/**
 * Undefined where a model's logits are not finite, or no token follows another. What a ruined
 * result has is reported as `maxRatio`.
 */
export function summarizeNextTokens(sums: NextTokens): Accuracy["language"] {
  const { predicted, positions, longestWindow } = sums;
  const [original, result] = [sums.originalSurprise / predicted, sums.resultSurprise / predicted];
  const figures = {
    originalPerplexity: Math.min(maxRatio, Math.exp(original)),
    resultPerplexity: Math.min(maxRatio, Math.exp(result)),
    perplexityRatio: Math.min(maxRatio, Math.exp(result - original)),
    klDivergence: Math.min(maxRatio, Math.max(0, sums.divergence / positions)),
  };
  if (!Object.values(figures).every(Number.isFinite)) return undefined;
  return { tokens: predicted, windowTokens: longestWindow, ...figures };
}

type Numbers = ReturnType<typeof tensorNumbers>;

/**
 * Logarithms of the sums of the exponentials of a row of both, and the Kullback-Leibler divergence of
 * the result's from the original's, nats. Rows are long: each exponential is computed once.
 */
function compareRows(
  before: Numbers,
  after: Numbers,
  { start, size }: { start: number; size: number },
): { one: number; other: number; divergence: number } {
  const [firstLargest, otherLargest] = [before, after].map((row) => {
    let largest = -Infinity;
    for (let at = start; at < start + size; at++) largest = Math.max(largest, Number(row[at]));
    return largest;
  });
  let [sum, otherSum, difference] = [0, 0, 0];
  for (let at = start; at < start + size; at++) {
    const [value, otherValue] = [Number(before[at]), Number(after[at])];
    const weight = Math.exp(value - Number(firstLargest));
    sum += weight;
    otherSum += Math.exp(otherValue - Number(otherLargest));
    difference += weight * (value - otherValue);
  }
  const one = Number(firstLargest) + Math.log(sum);
  const other = Number(otherLargest) + Math.log(otherSum);
  return { one, other, divergence: difference / sum - one + other };
}
