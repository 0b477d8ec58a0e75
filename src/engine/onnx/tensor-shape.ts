const maxFormattedDims = 8;

/** A shape as text; of a hostile one, its first dimensions. */
export function formatShape(dims: readonly bigint[]): string {
  const rest = dims.length > maxFormattedDims ? ", …" : "";
  return `[${dims.slice(0, maxFormattedDims).join(", ")}${rest}]`;
}

/** Number of elements. @throws RangeError where it is not a safe integer */
export function elementCount(dims: readonly bigint[]): number {
  let count = dims.includes(0n) ? 0n : 1n;
  for (const dim of dims) {
    count *= dim;
    if (dim < 0n || count > Number.MAX_SAFE_INTEGER) {
      throw new RangeError(`The shape ${formatShape(dims)} is not one of a tensor`);
    }
  }
  return Number(count);
}

/** Elements of a tensor with the given dimensions; 1 for a scalar. */
export function countElements(dims: readonly number[]): number {
  return dims.reduce((product, size) => product * size, 1);
}
