/** The middle one of the values, or the mean of the two in the middle; NaN where there are none. */
export function medianValue(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const below = sorted[Math.ceil(sorted.length / 2) - 1] ?? NaN;
  const above = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  return (below + above) / 2;
}
