import { maxRatio } from "../../contract/jobs/latency.ts";
import type { Accuracy } from "../../contract/jobs/telemetry.ts";
import { at } from "../onnx/at.ts";
import { compareRow, prepareRow, readLogitRows } from "../runtime/logit-rows.ts";
import type { TensorData } from "../runtime/tensor-data.ts";
import type { TokenWindow } from "../samples/token-windows.ts";

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
  const after = readLogitRows(result, window.length);
  sums.longestWindow = Math.max(sums.longestWindow, window.length);
  for (const [position, row] of readLogitRows(original, window.length).entries()) {
    const prepared = prepareRow(row);
    const other = at(after, position);
    const { divergence, logSum } = compareRow(prepared, other);
    sums.divergence += divergence;
    sums.positions += 1;
    const next = window[position + 1];
    if (next === undefined) continue;
    sums.originalSurprise += prepared.logSum - Number(row[next]);
    sums.resultSurprise += logSum - Number(other[next]);
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
