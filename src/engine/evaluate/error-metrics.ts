import { maxSqnrDb } from "../../contract/jobs/telemetry.ts";
import type { ErrorSums } from "./error-sums.ts";

export interface ErrorMetrics {
  sqnrDb: number;
  cosine: number;
  maxAbsoluteError: number | null;
}

/**
 * SQNR = 10 log10(Σx² / Σ(y-x)²) dB, cosine = Σxy / √(Σx² Σy²), and max |y-x|. Identical tensors
 * have +150 dB and cosine 1, a tensor that became zero or was zero has cosine 0, and one that
 * became or ceased to be finite has -150 dB and cosine 0.
 */
export function errorMetrics(sums: ErrorSums): ErrorMetrics {
  if (sums.notFinite) return { sqnrDb: -maxSqnrDb, cosine: 0, maxAbsoluteError: null };
  const { noise, maxAbsoluteError } = sums;
  if (noise === 0) return { sqnrDb: maxSqnrDb, cosine: 1, maxAbsoluteError };
  const decibels = 10 * Math.log10(sums.signal / noise);
  const norms = Math.sqrt(sums.signal) * Math.sqrt(sums.changed);
  return {
    sqnrDb: Math.min(maxSqnrDb, Math.max(-maxSqnrDb, decibels)),
    cosine: norms === 0 ? 0 : Math.min(1, Math.max(-1, sums.product / norms)),
    maxAbsoluteError,
  };
}
