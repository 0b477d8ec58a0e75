/** Running sums over the elements of an original and a changed tensor, in double precision. */
export interface ErrorSums {
  signal: number;
  noise: number;
  changed: number;
  product: number;
  maxAbsoluteError: number;
  /** Whether a position is finite in one tensor alone, or different and not finite in both. */
  notFinite: boolean;
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
