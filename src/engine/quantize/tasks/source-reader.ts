import { closeSync, openSync } from "node:fs";
import type { AffineTask, SourceWeight } from "./weight-task.ts";
import { CheckpointValues } from "../../checkpoints/checkpoint-values.ts";
import { readExactlySync } from "../../../model-files/file-access.ts";
import { bfloat16ToFloat32 } from "../kernels/convert-bfloat16.ts";
import { float16ToFloat32 } from "../kernels/convert-floats.ts";
import { type InputScales, multiplyInputs } from "../kernels/input-scales.ts";

/** Rows of a weight's values: `columns` values each, and `pitch` values apart. */
export interface SourceRectangle {
  /** Index of the first value. */
  readonly start: number;
  readonly rows: number;
  readonly columns: number;
  readonly pitch: number;
}

/** Reads a weight's values as float32, a part at a time. */
export class SourceReader implements Disposable {
  readonly #source: SourceWeight["source"];
  readonly #sourceType: SourceWeight["sourceType"];
  readonly #descriptor: number | undefined;
  readonly #checkpoint: CheckpointValues | undefined;
  readonly #inputScales: AffineTask["inputScales"];
  #bytes = new Uint8Array();
  #values = new Float32Array();

  constructor({
    source,
    sourceType,
    inputScales,
  }: Pick<SourceWeight, "source" | "sourceType"> & Pick<AffineTask, "inputScales">) {
    this.#inputScales = inputScales;
    this.#source = source;
    this.#sourceType = sourceType;
    this.#descriptor = source.kind === "file" ? openSync(source.path, "r") : undefined;
    this.#checkpoint =
      source.kind === "checkpoint" ? new CheckpointValues(source.pieces) : undefined;
  }

  /** The values of a rectangle, row by row. The next call overwrites them. */
  read(rectangle: SourceRectangle): Float32Array {
    const count = rectangle.rows * rectangle.columns;
    const width = this.#sourceType === "float32" ? 4 : 2;
    this.#reserve(count, width);
    this.#readRows(rectangle, width);
    const values = this.#values.subarray(0, count);
    if (width === 2) {
      const halves = new Uint16Array(this.#bytes.buffer, 0, count);
      if (this.#sourceType === "float16") float16ToFloat32(halves, values);
      else bfloat16ToFloat32(halves, values);
    }
    if (this.#inputScales !== undefined) multiplyRows(values, rectangle, this.#inputScales);
    return values;
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#checkpoint?.[Symbol.dispose]();
    releaseBuffers(this.#bytes, this.#values);
  }

  #reserve(count: number, width: number): void {
    if (count <= this.#values.length) return;
    releaseBuffers(this.#bytes, this.#values);
    this.#bytes = new Uint8Array(count * width);
    this.#values = width === 4 ? new Float32Array(this.#bytes.buffer) : new Float32Array(count);
  }

  #readRows({ start, rows, columns, pitch }: SourceRectangle, width: number): void {
    const isContiguous = rows === 1 || columns === pitch;
    const [runs, length] = isContiguous ? [1, rows * columns * width] : [rows, columns * width];
    for (let run = 0; run < runs; run++) {
      const into = this.#bytes.subarray(run * length, run * length + length);
      this.#readBytes(into, (start + run * pitch) * width);
    }
  }

  #readBytes(into: Uint8Array, start: number): void {
    if (this.#source.kind === "memory") {
      into.set(this.#source.bytes.subarray(start, start + into.length));
    } else if (this.#source.kind === "checkpoint") {
      const floats = new Float32Array(into.buffer, into.byteOffset, into.length / 4);
      this.#checkpoint?.read(start / 4, floats);
    } else if (this.#descriptor !== undefined) {
      readExactlySync(this.#descriptor, into, this.#source.offset + start);
    }
  }
}

function multiplyRows(
  values: Float32Array,
  { start, rows, columns, pitch }: SourceRectangle,
  scales: InputScales,
): void {
  for (let row = 0; row < rows; row++) {
    const part = values.subarray(row * columns, (row + 1) * columns);
    multiplyInputs(part, start + row * pitch, scales);
  }
}

/**
 * Frees memory at once. The garbage collector does not see how much the buffers take, and would
 * let them pile up.
 */
export function releaseBuffers(...arrays: readonly ArrayBufferView[]): void {
  for (const { buffer } of arrays) {
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}
