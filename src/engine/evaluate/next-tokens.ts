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
    const [one, other] = [logarithmOfSum(before, start, size), logarithmOfSum(after, start, size)];
    sums.divergence += divergence(before, after, { start, size, one, other });
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

/** Logarithm of the sum of the exponentials of a row. */
function logarithmOfSum(values: Numbers, start: number, size: number): number {
  let largest = -Infinity;
  for (let at = start; at < start + size; at++) largest = Math.max(largest, Number(values[at]));
  let sum = 0;
  for (let at = start; at < start + size; at++) sum += Math.exp(Number(values[at]) - largest);
  return largest + Math.log(sum);
}

/** Kullback-Leibler divergence of a row of the result from the original's, nats. */
function divergence(
  before: Numbers,
  after: Numbers,
  { start, size, one, other }: { start: number; size: number; one: number; other: number },
): number {
  let sum = 0;
  for (let at = start; at < start + size; at++) {
    const logarithm = Number(before[at]) - one;
    sum += Math.exp(logarithm) * (logarithm - (Number(after[at]) - other));
  }
  return sum;
}
