/** Running sums over the elements of an original and a changed tensor, in double precision. */
export interface ErrorSums {
  signal: number;
  noise: number;
  changed: number;
  product: number;
  maxAbsoluteError: number;
  /** Whether a position was found that is finite in one tensor alone, or not finite in both but different. */
  notFinite: boolean;
}

export function emptyErrorSums(): ErrorSums {
  return { signal: 0, noise: 0, changed: 0, product: 0, maxAbsoluteError: 0, notFinite: false };
}

/**
 * Adds the elements of a tensor pair, or of a part of one. Positions that hold the same infinity or NaN in both are left out;
 * all others that are not finite mark the sums.
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
  Object.assign(sums, {
    signal,
    noise,
    changed: changedEnergy,
    product,
    maxAbsoluteError,
    notFinite,
  });
}

/** Adds an original tensor for which the changed model gave nothing comparable: it counts as if zeros had come. */
export function addMissingErrors(sums: ErrorSums, original: ArrayLike<number>): void {
  addErrors(sums, original, new Float64Array(original.length));
}
