/** Running sums over the elements of an original and a changed tensor, in double precision. */
export interface ErrorSums {
  signal: number;
  noise: number;
  changed: number;
  product: number;
  maxAbsoluteError: number;
  /** Whether a position is finite in only one tensor, or different and not finite in both. */
  notFinite: boolean;
}
