import { closeSync, openSync } from "node:fs";
import { readExactlySync } from "../../onnx/read-exactly.ts";
import type { TensorSource } from "../../onnx/read-tensor.ts";
import type { ValueTile } from "../kernels/channel-layout.ts";
import { float16ToFloat32 } from "../kernels/convert-floats.ts";
import { releaseBuffers } from "./release-buffers.ts";
import type { WeightTask } from "./weight-task.ts";

/** Values that are converted at once: 1 MB of float32. A thread can be stopped between tiles. */
export const tileValues = 256 * 1024;

/** Values of a weight as float32, tile by tile. The next tile overwrites the last one. */
export function* readTiles(task: WeightTask, size = tileValues): Generator<ValueTile> {
  const { source, sourceType, elements } = task;
  const width = sourceType === "float32" ? 4 : 2;
  const tileSize = Math.min(size, elements);
  const bytes = new Uint8Array(tileSize * width);
  const values =
    sourceType === "float32" ? new Float32Array(bytes.buffer) : new Float32Array(tileSize);
  using reader = new SourceReader(source);
  for (let start = 0; start < elements; start += tileSize) {
    const count = Math.min(tileSize, elements - start);
    reader.read(bytes.subarray(0, count * width), start * width);
    const tile = values.subarray(0, count);
    if (sourceType === "float16") float16ToFloat32(new Uint16Array(bytes.buffer, 0, count), tile);
    yield { values: tile, start };
  }
  releaseBuffers(bytes, values);
}

/** Reads ranges of a weight's raw bytes. */
class SourceReader {
  readonly #source: TensorSource;
  readonly #descriptor: number | undefined;

  constructor(source: TensorSource) {
    this.#source = source;
    this.#descriptor = source.kind === "file" ? openSync(source.path, "r") : undefined;
  }

  read(into: Uint8Array, start: number): void {
    if (this.#source.kind === "memory") {
      into.set(this.#source.bytes.subarray(start, start + into.length));
    } else if (this.#descriptor !== undefined) {
      readExactlySync(this.#descriptor, into, this.#source.offset + start);
    }
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}
