import { readExactlySync } from "./file-access.ts";

/** Bytes read at once: enough for sequential speed, and little lost where weights are skipped. */
const windowBytes = 256 * 1024;

/** Ranges up to this size are copied from the buffer: one read serves many of them. */
const smallCopyBytes = 1024;

/** Random access to the bytes of an open file through one small buffer, or to bytes in memory. */
export class ByteWindow {
  readonly length: number;
  readonly #descriptor: number | undefined;
  readonly #buffer: Uint8Array;
  #start = 0;
  #end: number;

  private constructor(length: number, buffer: Uint8Array, descriptor?: number) {
    this.length = length;
    this.#buffer = buffer;
    this.#descriptor = descriptor;
    this.#end = descriptor === undefined ? length : 0;
  }

  static fromFile(descriptor: number, length: number): ByteWindow {
    return new ByteWindow(length, new Uint8Array(Math.min(windowBytes, length)), descriptor);
  }

  static fromBytes(bytes: Uint8Array): ByteWindow {
    return new ByteWindow(bytes.length, bytes);
  }

  byteAt(position: number): number {
    if (position < this.#start || position >= this.#end) this.#fill(position);
    const byte = this.#buffer[position - this.#start];
    if (byte === undefined) {
      throw new RangeError(`Byte ${position} lies after the end, which is ${this.length}`);
    }
    return byte;
  }

  /** Copies the bytes from `start` to before `end`. */
  copy(start: number, end: number): Uint8Array {
    const length = end - start;
    const isSmall = length > 0 && length <= smallCopyBytes;
    if (isSmall && (start < this.#start || end > this.#end)) this.#fill(start);
    if (start >= this.#start && end <= this.#end) {
      return this.#buffer.slice(start - this.#start, end - this.#start);
    }
    const bytes = new Uint8Array(length);
    if (this.#descriptor !== undefined) readExactlySync(this.#descriptor, bytes, start);
    return bytes;
  }

  #fill(position: number): void {
    if (this.#descriptor === undefined) return;
    const wanted = Math.min(this.#buffer.length, this.length - position);
    if (wanted <= 0) return;
    this.#start = position;
    this.#end = position;
    readExactlySync(this.#descriptor, this.#buffer.subarray(0, wanted), position);
    this.#end = position + wanted;
  }
}
