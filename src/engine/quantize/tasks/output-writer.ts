import { closeSync, openSync, readSync, writeSync } from "node:fs";
import type { ModelTask, PlacedTask } from "./weight-task.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import type { Destination } from "../../onnx/write-model.ts";

/** A part of a payload that is an array of rows: `elements` of each of some rows. */
export interface OutputRectangle {
  /** Bits of an element; those of 4 bits are packed across rows, the first in the low bits. */
  readonly bits: 4 | 8 | 16 | 32;
  readonly rowElements: number;
  readonly firstRow: number;
  readonly firstElement: number;
  readonly rows: number;
  readonly elements: number;
}

/** Writes results to their destinations. */
export class OutputWriter implements Disposable {
  readonly #destinations: PlacedTask["destinations"];
  /** Descriptors by path. */
  readonly #files = new Map<string, number>();

  constructor(destinations: PlacedTask["destinations"]) {
    this.#destinations = destinations;
  }

  /** Writes a part of a payload, which begins `offset` bytes after the payload does. */
  write(payload: number, content: ArrayBufferView, offset = 0): void {
    const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    for (const destination of this.#destinations.get(payload) ?? []) {
      this.#writeAt(destination, bytes, offset);
    }
  }

  /** Writes rows that are packed one after the other. Elements beside them stay as they are. */
  writeRectangle(payload: number, content: ArrayBufferView, rectangle: OutputRectangle): void {
    const { bits, rowElements, firstRow, firstElement, rows, elements } = rectangle;
    const first = firstRow * rowElements + firstElement;
    const isWhole = elements === rowElements;
    const [runs, count] = isWhole ? [1, rows * elements] : [rows, elements];
    const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    const width = bits / 8;
    for (let run = 0; run < runs; run++) {
      const from = run * count;
      const to = first + run * rowElements;
      if (bits === 4) this.#writeHalfBytes(payload, bytes, { from, to, count });
      else this.write(payload, bytes.subarray(from * width, (from + count) * width), to * width);
    }
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) closeSync(file);
  }

  #open(path: string): number {
    const file = this.#files.get(path) ?? openSync(path, "r+");
    this.#files.set(path, file);
    return file;
  }

  #writeAt({ path, offset: start }: Destination, bytes: Uint8Array, offset: number): void {
    const file = this.#open(path);
    for (let done = 0; done < bytes.length;) {
      done += writeSync(file, bytes, done, bytes.length - done, start + offset + done);
    }
  }

  /** Half bytes that share a byte with others are merged with what the file has there. */
  #writeHalfBytes(payload: number, content: Uint8Array, run: HalfByteRun): void {
    const { from, to, count } = run;
    if (from % 2 === 0 && to % 2 === 0 && count % 2 === 0) {
      this.write(payload, content.subarray(from / 2, (from + count) / 2), to / 2);
      return;
    }
    const start = Math.floor(to / 2);
    const bytes = new Uint8Array(Math.ceil((to + count) / 2) - start);
    for (const destination of this.#destinations.get(payload) ?? []) {
      const file = this.#open(destination.path);
      for (const edge of new Set([0, bytes.length - 1])) {
        readSync(file, bytes, edge, 1, destination.offset + start + edge);
      }
      copyHalfBytes(content, bytes, { from, to: to % 2, count });
      this.#writeAt(destination, bytes, start);
    }
  }
}

/** Half bytes, counted from the low bits of the first byte on. */
interface HalfByteRun {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Copies half bytes; those of `target` beside them stay as they are. */
function copyHalfBytes(
  source: Uint8Array,
  target: Uint8Array,
  { from, to, count }: HalfByteRun,
): void {
  for (let index = 0; index < count; index++) {
    const [read, written] = [from + index, to + index];
    const value = (Number(source[Math.floor(read / 2)]) >> ((read % 2) * 4)) & 15;
    const at = Math.floor(written / 2);
    const shift = (written % 2) * 4;
    target[at] = (Number(target[at]) & (0xf0 >> shift)) | (value << shift);
  }
}

/** Indices of the payloads that a task computes. */
export function outputPayloads({ outputs }: Pick<ModelTask, "outputs">): number[] {
  return Object.values(outputs).filter((payload) => typeof payload === "number");
}

/** Bytes of each payload that a task computes. */
export function outputLengths(model: OnnxModel, task: ModelTask): number[] {
  return outputPayloads(task).map((payload) => payloadLength(model, payload));
}

export function payloadLength({ payloads }: OnnxModel, payload: number): number {
  const length = payloads[payload]?.length;
  if (length === undefined) throw new TypeError(`There is no payload ${payload}`);
  return length;
}
