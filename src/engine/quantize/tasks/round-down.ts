/** The largest multiple of `unit` up to a number, but at least one. */
export function roundDown(number: number, unit: number): number {
  return Math.max(1, Math.floor(number / unit)) * unit;
}
