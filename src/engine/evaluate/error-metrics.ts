import type { ErrorSums } from "../quantize/kernels/error-sums.ts";
import { maxSqnrDb } from "../../contract/jobs/telemetry.ts";

export interface ErrorMetrics {
  sqnrDb: number;
  cosine: number;
  maxAbsoluteError: number | null;
}

/**
 * SQNR = 10 log10(Σx² / Σ(y-x)²) dB, cosine = Σxy / √(Σx² Σy²), and max |y-x|. Identical tensors
 * have +150 dB and cosine 1, a tensor that became zero or was zero has cosine 0, and one that
 * became or ceased to be finite, or whose squares a double cannot have, has -150 dB and cosine 0.
 */
export function errorMetrics(sums: ErrorSums): ErrorMetrics {
  const { signal, noise, changed, maxAbsoluteError, notFinite } = sums;
  if (noise === 0 && !notFinite) return { sqnrDb: maxSqnrDb, cosine: 1, maxAbsoluteError };
  const isComparable = !notFinite && Number.isFinite(signal + noise + changed);
  if (!isComparable) return { sqnrDb: -maxSqnrDb, cosine: 0, maxAbsoluteError: null };
  const decibels = 10 * Math.log10(signal / noise);
  const norms = Math.sqrt(signal) * Math.sqrt(changed);
  return {
    sqnrDb: Math.min(maxSqnrDb, Math.max(-maxSqnrDb, decibels)),
    cosine: norms === 0 ? 0 : Math.min(1, Math.max(-1, sums.product / norms)),
    maxAbsoluteError,
  };
}

export function emptyErrorSums(): ErrorSums {
  return { signal: 0, noise: 0, changed: 0, product: 0, maxAbsoluteError: 0, notFinite: false };
}

/**
 * Adds the elements of a tensor pair, or of a part of one. Positions with the same infinity or NaN
 * in both are left out; all others that are not finite set `notFinite`.
 */
export function addErrors(
  sums: ErrorSums,
  original: ArrayLike<number>,
  changed: ArrayLike<number>,
): void {
  let { signal, noise, changed: changedEnergy, product, maxAbsoluteError, notFinite } = sums;
  for (let index = 0; index < original.length; index++) {
    const x = Number(original[index]);
    const y = Number(changed[index]);
    const error = y - x;
    if (Number.isFinite(error)) {
      signal += x * x;
      noise += error * error;
      changedEnergy += y * y;
      product += x * y;
      const size = Math.abs(error);
      if (size > maxAbsoluteError) maxAbsoluteError = size;
    } else if (!Object.is(x, y)) {
      notFinite = true;
    }
  }
  Object.assign(sums, { signal, noise, product, maxAbsoluteError, notFinite });
  sums.changed = changedEnergy;
}

/** Adds an original tensor without a comparable one of the changed model, which counts as zeros. */
export function addMissingErrors(sums: ErrorSums, original: ArrayLike<number>): void {
  addErrors(sums, original, new Float64Array(original.length));
}
