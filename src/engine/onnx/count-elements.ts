/** Elements of a tensor with the given dimensions; 1 for a scalar. */
export function countElements(dims: readonly number[]): number {
  return dims.reduce((product, size) => product * size, 1);
}
