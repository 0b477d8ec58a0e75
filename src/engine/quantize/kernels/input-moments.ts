import { MatrixMemory } from "./second-order.ts";

/** Inputs whose products with one another are known, at most: weights with more have several such. */
const maxSegment = 2048;

/** Rows of activations that are added at once. */
const chunkRows = 64;

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
  return segmentRows(inputs, errors).reduce((sum, { rows, size }) => sum + 4 * rows * size, 0);
}

/** Rows and columns of sums that a segment has; with errors there is only one. */
function segmentRows(inputs: number, errors: number) {
  if (errors > 0) return [{ first: 0, rows: inputs, size: inputs + errors }];
  return momentSegments(inputs).map((each) => ({ ...each, rows: each.size }));
}

/**
 * Sums of the products of each input with the inputs and the errors of its segment, over all rows of
 * an activation.
 */
export class InputMoments {
  readonly #columns: number;
  #rows = 0;
  readonly #memory = new MatrixMemory();
  readonly #segments: Segment[];
  readonly #values: number;
  readonly #panels: number;

  constructor(inputs: number, errors: number) {
    this.#columns = inputs + errors;
    const segments = segmentRows(inputs, errors).map((each) => {
      return { ...each, padded: Math.ceil(each.size / 8) * 8 };
    });
    const widest = Math.max(...segments.map(({ padded }) => padded));
    this.#values = this.#memory.allocate(chunkRows * widest * 4);
    this.#panels = this.#memory.allocate(chunkRows * widest * 4);
    this.#segments = segments.map((each) => {
      const bytes = Math.ceil(each.rows / 4) * 4 * each.padded * 4;
      return { ...each, sums: this.#memory.allocate(bytes) };
    });
  }

  /** Adds rows of values, one behind the other. */
  add(values: Float32Array): void {
    const count = values.length / this.#columns;
    this.#rows += count;
    for (const segment of this.#segments) {
      for (let row = 0; row < count; row += chunkRows) {
        this.#addRows(values, segment, { row, count: Math.min(chunkRows, count - row) });
      }
    }
  }

  #addRows(
    values: Float32Array,
    { first, rows, size, padded, sums }: Segment,
    { row, count }: { row: number; count: number },
  ): void {
    const staged = this.#memory.floats(this.#values, count * padded);
    if (padded > size) staged.fill(0);
    for (let index = 0; index < count; index++) {
      const start = (row + index) * this.#columns + first;
      staged.set(values.subarray(start, start + size), index * padded);
    }
    this.#memory.kernels.addMoments(this.#values, count, padded, rows, this.#panels, sums);
  }

  get rows(): number {
    return this.#rows;
  }

  /** The sums of each segment, a row for each input; only the upper triangle counts. */
  *read(): Generator<Float32Array> {
    for (const { rows, size, padded, sums } of this.#segments) {
      const all = this.#memory.floats(sums, rows * padded);
      const moments = new Float32Array(rows * size);
      for (let row = 0; row < rows; row++) {
        moments.set(all.subarray(row * padded, row * padded + size), row * size);
      }
      yield moments;
    }
  }
}

interface Segment {
  readonly first: number;
  readonly rows: number;
  readonly size: number;
  /** The size, to a multiple of eight. */
  readonly padded: number;
  /** Address. */
  readonly sums: number;
}
