/** Inputs whose products with one another are known, at most: weights with more have several such. */
const maxSegment = 2048;

/**
 * How the inputs of a matrix are divided so that each part's moments fit into memory: all parts but
 * the last have the same size, which is a multiple of 256, the largest block.
 */
export function momentSegments(inputs: number): { first: number; size: number }[] {
  const count = Math.ceil(inputs / maxSegment);
  const size = count === 1 ? inputs : Math.ceil(inputs / count / 256) * 256;
  return Array.from({ length: Math.ceil(inputs / size) }, (_, index) => {
    const first = index * size;
    return { first, size: Math.min(size, inputs - first) };
  });
}

/** Bytes of the moments of rows that have so many inputs, and errors after them. */
export function momentBytes(inputs: number, errors: number): number {
  return listSegments(inputs, errors).reduce((sum, { rows, size }) => sum + 4 * rows * size, 0);
}

/** Rows and columns of sums that each segment has; with errors there is only one. */
export function listSegments(inputs: number, errors: number) {
  if (errors > 0) return [{ first: 0, rows: inputs, size: inputs + errors }];
  return momentSegments(inputs).map((each) => ({ ...each, rows: each.size }));
}
