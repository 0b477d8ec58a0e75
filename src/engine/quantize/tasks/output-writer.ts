import { closeSync, openSync, writeSync } from "node:fs";
import type { PlacedTask } from "./placed-task.ts";

/** Writes results to their destinations. */
export class OutputWriter {
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
      const file = this.#files.get(destination.path) ?? openSync(destination.path, "r+");
      this.#files.set(destination.path, file);
      const position = destination.offset + offset;
      for (let done = 0; done < bytes.length;) {
        done += writeSync(file, bytes, done, bytes.length - done, position + done);
      }
    }
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) closeSync(file);
  }
}
