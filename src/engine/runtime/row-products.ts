import { writeFile } from "node:fs/promises";
import { alignedBytes } from "./aligned-bytes.ts";
import type { SummedRows } from "./session-protocol.ts";
import type { TensorData } from "./tensor-data.ts";
import { usedRows } from "./used-rows.ts";
import { at } from "../onnx/at.ts";

/** Most columns whose products with as many others are summed up in one call. */
const panelColumns = 512;
/** Rows that are gathered before their products are summed up. */
export const gatheredRows = 1024;

/** A matrix, row by row. */
export interface Matrix {
  readonly values: Float32Array;
  readonly rows: number;
  readonly columns: number;
}

/** Adds to `sums` the products of the columns of two matrices of as many rows. */
type AddProducts = (left: Matrix, right: Matrix, sums: Matrix) => Promise<void>;

/**
 * Sums of the products of columns, over all rows of values that a model gives. The sums depend on the
 * order of the rows, not on how they are divided among the values.
 */
export class RowProducts {
  readonly #summed: SummedRows;
  readonly #addProducts: AddProducts;
  readonly #segments: readonly Segment[];
  #gathered = 0;
  #rows = 0;

  constructor(summed: SummedRows, addProducts: AddProducts) {
    this.#summed = summed;
    this.#addProducts = addProducts;
    this.#segments = summed.segments.map(createSegment);
  }

  takes(value: string): boolean {
    return this.#summed.values.includes(value);
  }

  /** @param mask says which rows count, where it has as many as the tensor */
  async add(tensor: TensorData, mask: Uint8Array | undefined): Promise<void> {
    const { columns } = this.#summed;
    for (const rows of usedRows(tensor, columns, mask)) {
      for (let start = 0; start < rows.length; start += columns) {
        this.#gather(rows, start);
        if (this.#gathered === gatheredRows) await this.#flush();
      }
    }
  }

  #gather(values: Float32Array, start: number): void {
    for (const { panels } of this.#segments) {
      for (const { first, columns, gathered } of panels) {
        const from = start + first;
        gathered.set(values.subarray(from, from + columns), this.#gathered * columns);
      }
    }
    this.#gathered += 1;
  }

  async #flush(): Promise<void> {
    const rows = this.#gathered;
    if (rows === 0) return;
    const matrixOf = ({ gathered, columns }: Panel) => {
      return { values: gathered.subarray(0, rows * columns), rows, columns };
    };
    for (const { tiles } of this.#segments) {
      for (const { left, right, sums } of tiles) {
        const into = { values: sums, rows: left.columns, columns: right.columns };
        await this.#addProducts(matrixOf(left), matrixOf(right), into);
      }
    }
    this.#rows += rows;
    this.#gathered = 0;
  }

  /**
   * Writes the sums of each segment: a row for each of the columns that are multiplied, with its
   * products with all columns of the segment.
   */
  async write() {
    await this.#flush();
    const matrices = this.#segments.map(joinTiles);
    await writeFile(this.#summed.path, matrices);
    return { path: this.#summed.path, rows: this.#rows, isFinite: matrices.every(isFinite) };
  }
}

interface Panel {
  /** Of a row. */
  readonly first: number;
  readonly columns: number;
  readonly gathered: Float32Array;
}

/** Sums of the products of two panels. */
interface Tile {
  readonly left: Panel;
  readonly right: Panel;
  readonly sums: Float32Array;
}

interface Segment {
  readonly first: number;
  readonly rows: number;
  readonly size: number;
  readonly panels: readonly Panel[];
  readonly tiles: readonly Tile[];
}

/** Of products of multiplied columns with one another, only those with later panels are summed up. */
function createSegment({ first, rows, size }: SummedRows["segments"][number]): Segment {
  const leading = createPanels(first, rows);
  const panels = [...leading, ...createPanels(first + rows, size - rows)];
  const tiles = leading.flatMap((left, index) =>
    panels.slice(index).map((right) => {
      return { left, right, sums: createFloats(left.columns * right.columns) };
    }),
  );
  return { first, rows, size, panels, tiles };
}

function createPanels(start: number, all: number): Panel[] {
  const count = Math.ceil(all / panelColumns);
  return Array.from({ length: count }, (_, index) => {
    const [from, end] = [index, index + 1].map((each) => Math.floor((each * all) / count));
    const [first, columns] = [start + (from ?? 0), (end ?? 0) - (from ?? 0)];
    return { first, columns, gathered: createFloats(gatheredRows * columns) };
  });
}

function createFloats(length: number): Float32Array {
  return new Float32Array(alignedBytes(4 * length).buffer, 0, length);
}

function joinTiles({ first, rows, size, tiles }: Segment): Float32Array {
  const matrix = new Float32Array(rows * size);
  for (const { left, right, sums } of tiles) {
    const [row, column] = [left.first - first, right.first - first];
    for (let index = 0; index < left.columns; index++) {
      const part = sums.subarray(index * right.columns, (index + 1) * right.columns);
      matrix.set(part, (row + index) * size + column);
    }
    if (column >= rows || row === column) continue;
    for (let index = 0; index < left.columns; index++) {
      for (let other = 0; other < right.columns; other++) {
        const sum = at(sums, index * right.columns + other);
        matrix[(column + other) * size + row + index] = sum;
      }
    }
  }
  return matrix;
}

function isFinite(values: Float32Array): boolean {
  for (const value of values) {
    if (!Number.isFinite(value)) return false;
  }
  return true;
}
