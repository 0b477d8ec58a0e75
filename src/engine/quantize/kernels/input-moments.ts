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

/** Bytes of the moments of so many inputs. */
export function momentBytes(inputs: number): number {
  return momentSegments(inputs).reduce((sum, { size }) => sum + 4 * size * size, 0);
}

/** Sums of the products of each two inputs of a segment, over all rows of an activation. */
export class InputMoments {
  readonly #inputs: number;
  #rows = 0;
  readonly #memory = new MatrixMemory();
  readonly #segments: { first: number; size: number; padded: number; sums: number }[];
  readonly #values: number;
  readonly #panels: number;

  constructor(inputs: number) {
    this.#inputs = inputs;
    const segments = momentSegments(inputs).map((each) => {
      return { ...each, padded: Math.ceil(each.size / 8) * 8 };
    });
    const widest = Math.max(...segments.map(({ padded }) => padded));
    this.#values = this.#memory.allocate(chunkRows * widest * 4);
    this.#panels = this.#memory.allocate(chunkRows * widest * 4);
    this.#segments = segments.map((each) => {
      return { ...each, sums: this.#memory.allocate(each.padded ** 2 * 4) };
    });
  }

  /** Adds rows of values, one behind the other. */
  add(values: Float32Array): void {
    const rows = values.length / this.#inputs;
    this.#rows += rows;
    for (const segment of this.#segments) {
      for (let row = 0; row < rows; row += chunkRows) {
        this.#addRows(values, segment, { row, rows: Math.min(chunkRows, rows - row) });
      }
    }
  }

  #addRows(
    values: Float32Array,
    { first, size, padded, sums }: { first: number; size: number; padded: number; sums: number },
    { row, rows }: { row: number; rows: number },
  ): void {
    const staged = this.#memory.floats(this.#values, rows * padded);
    if (padded > size) staged.fill(0);
    for (let index = 0; index < rows; index++) {
      const start = (row + index) * this.#inputs + first;
      staged.set(values.subarray(start, start + size), index * padded);
    }
    this.#memory.kernels.addMoments(this.#values, rows, padded, this.#panels, sums);
  }

  get rows(): number {
    return this.#rows;
  }

  /** The sums of each segment, of which the upper triangle counts. */
  *read(): Generator<Float32Array> {
    for (const { size, padded, sums } of this.#segments) {
      const all = this.#memory.floats(sums, padded * padded);
      const moments = new Float32Array(size * size);
      for (let row = 0; row < size; row++) {
        moments.set(all.subarray(row * padded, row * padded + size), row * size);
      }
      yield moments;
    }
  }
}
