/**
 * The nearest-rank percentile: the smallest of the sorted values that at least `share` (0 to 1) of
 * all values do not exceed.
 */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError("No values to take a percentile of");
  return value;
}
