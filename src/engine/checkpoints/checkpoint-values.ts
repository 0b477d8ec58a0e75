import { closeSync, openSync } from "node:fs";
import path from "node:path";
import { readExactlySync } from "../../model-files/file-access.ts";
import { type Encoding, encodings } from "./encodings.ts";
import { ServiceError } from "../../contract/errors.ts";
import { roundToFloat16 } from "../quantize/kernels/convert-floats.ts";
import { fillRotaryCache, type RotaryCache } from "./rotary-cache.ts";

/**
 * Rows of a matrix as a checkpoint stores them, one after the other in one file. `rows` and
 * `columns` count values.
 */
export interface StoredRows {
  readonly kind: "stored";
  readonly path: string;
  /** Of the first row in the file, bytes. */
  readonly offset: number;
  readonly encoding: Encoding;
  readonly rows: number;
  readonly columns: number;
  /**
   * Rows of a group whose halves are interleaved in the file: row 2i is row i of the group, and row
   * 2i + 1 row i of its second half. GGUF files of the Llama family have each head's rows of queries
   * and keys that way.
   */
  readonly interleavedRows?: number | undefined;
  /** Added to every value, in float32. */
  readonly addend?: number | undefined;
  /** A scale for each block of rows and columns, which its values are multiplied by. */
  readonly blockScales?: BlockScales | undefined;
}

interface BlockScales {
  readonly blockRows: number;
  readonly blockColumns: number;
  /** Row of the whole tensor that the first row of these is. */
  readonly firstRow: number;
  readonly scales: Omit<StoredRows, "blockScales">;
}

/** A piece of a tensor: read from a checkpoint, or computed. */
export type ValueRows = StoredRows | RotaryCache;

/** Types that a graph can have the values of a checkpoint in. */
export type CheckpointType = "float32" | "float16";

/** Bytes of a value. */
export const checkpointTypeBytes = { float32: 4, float16: 2 } as const satisfies Record<
  CheckpointType,
  number
>;

/** Number of values of a piece. */
export function countValues(piece: Pick<ValueRows, "rows" | "columns">): number {
  return piece.rows * piece.columns;
}

/**
 * Reads the values of a tensor that consists of pieces, one after the other, as float32: any range
 * of them, by ranges of the files. It holds a decoded block at most besides what a caller asks for.
 */
export class CheckpointValues implements Disposable {
  readonly #pieces: readonly ValueRows[];
  readonly #descriptors = new Map<string, number>();
  #bytes = new Uint8Array();

  constructor(pieces: readonly ValueRows[]) {
    this.#pieces = pieces;
  }

  /**
   * Fills `into` with the values from the one with index `start` on.
   * @throws RangeError where a file ends before
   */
  read(start: number, into: Float32Array): void {
    let first = 0;
    for (const piece of this.#pieces) {
      const end = first + countValues(piece);
      const [from, to] = [Math.max(start, first), Math.min(start + into.length, end)];
      if (from < to) {
        this.#readPiece(piece, from - first, into.subarray(from - start, to - start));
      }
      first = end;
    }
    if (start + into.length > first) {
      throw new RangeError(`A tensor has ${first} values; ${start + into.length} were asked for`);
    }
  }

  /**
   * Fills `into` with the bytes that the values have in a type, from the byte `position` on.
   * @throws ServiceError model_unsupported for a value beyond the range of the type
   */
  readBytes(type: CheckpointType, position: number, into: Uint8Array): void {
    const width = checkpointTypeBytes[type];
    const count = into.length / width;
    if (type === "float32") {
      return this.read(position / width, new Float32Array(into.buffer, into.byteOffset, count));
    }
    const floats = new Float32Array(count);
    this.read(position / width, floats);
    const halves = new Uint16Array(into.buffer, into.byteOffset, count);
    if (roundToFloat16(floats, halves) > 0) {
      const [piece] = this.#pieces;
      const file = piece?.kind === "stored" ? `${path.basename(piece.path)} has` : "The model has";
      const message = `${file} values beyond the range of half precision, in which GPUs run it`;
      throw new ServiceError("model_unsupported", message);
    }
  }

  [Symbol.dispose](): void {
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor);
    this.#descriptors.clear();
  }

  #readPiece(piece: ValueRows, start: number, into: Float32Array): void {
    if (piece.kind === "rotary") return fillRotaryCache(piece, start, into);
    if (piece.interleavedRows === undefined) this.#readRun(piece, start, into);
    else this.#readInterleaved(piece, piece.interleavedRows, start, into);
    if (piece.blockScales !== undefined) this.#multiply(piece, piece.blockScales, start, into);
    const { addend } = piece;
    if (addend !== undefined) into.forEach((value, index) => (into[index] = value + addend));
  }

  /** Row by row, each from where it is in its group. */
  #readInterleaved(piece: StoredRows, group: number, start: number, into: Float32Array): void {
    const { columns } = piece;
    for (let done = 0; done < into.length;) {
      const row = Math.floor((start + done) / columns);
      const column = (start + done) % columns;
      const count = Math.min(columns - column, into.length - done);
      const within = row % group;
      const half = within < group / 2 ? 0 : 1;
      const stored = row - within + 2 * (within - (half * group) / 2) + half;
      this.#readRun(piece, stored * columns + column, into.subarray(done, done + count));
      done += count;
    }
  }

  /** Values that follow one another in the file; those of blocks that are cut are decoded aside. */
  #readRun({ path: file, offset, encoding }: StoredRows, start: number, into: Float32Array): void {
    const { blockValues, blockBytes, decode } = encodings[encoding];
    const [firstBlock, skipped] = [Math.floor(start / blockValues), start % blockValues];
    const blocks = Math.ceil((skipped + into.length) / blockValues);
    const bytes = this.#reserve(blocks * blockBytes);
    readExactlySync(this.#open(file), bytes, offset + firstBlock * blockBytes);
    const count = blocks * blockValues;
    if (count === into.length) return decode(bytes, into);
    const values = new Float32Array(count);
    decode(bytes, values);
    into.set(values.subarray(skipped, skipped + into.length));
  }

  #multiply(piece: StoredRows, by: BlockScales, start: number, into: Float32Array): void {
    const { blockRows, blockColumns, firstRow, scales } = by;
    const row = new Float32Array(scales.columns);
    let loaded = -1;
    for (let index = 0; index < into.length; index++) {
      const column = (start + index) % piece.columns;
      const block = Math.floor(
        (firstRow + Math.floor((start + index) / piece.columns)) / blockRows,
      );
      if (block !== loaded) this.#readRun(scales, block * scales.columns, row);
      loaded = block;
      into[index] = Number(into[index]) * Number(row[Math.floor(column / blockColumns)]);
    }
  }

  #reserve(length: number): Uint8Array {
    if (this.#bytes.length < length) this.#bytes = new Uint8Array(length);
    return this.#bytes.subarray(0, length);
  }

  #open(file: string): number {
    const descriptor = this.#descriptors.get(file) ?? openSync(file, "r");
    this.#descriptors.set(file, descriptor);
    return descriptor;
  }
}
