import { randomUUID } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import path from "node:path";
import type { TensorData } from "../runtime/tensor-data.ts";
import { readExactly } from "../../model-files/file-access.ts";

interface StoredTensor extends Pick<TensorData, "type" | "shape"> {
  readonly length: number;
  /** The elements, or their offset in the file. */
  readonly place: Uint8Array | number;
}

/** Tensors by sample and name, in memory as far as there is some for spools, then in a file. */
export class TensorSpool implements AsyncDisposable {
  readonly #memory: SpoolMemory;
  readonly #path: string;
  readonly #tensors = new Map<string, StoredTensor>();
  #file: FileHandle | undefined;
  #fileBytes = 0;
  #memoryBytes = 0;

  constructor(directory: string, memory: SpoolMemory) {
    this.#memory = memory;
    this.#path = path.join(directory, `${randomUUID()}.spool`);
  }

  async write(sample: number, tensors: readonly TensorData[]): Promise<void> {
    for (const tensor of tensors) {
      const { name, type, shape, bytes } = tensor;
      const place = await this.#store(bytes);
      this.#tensors.set(tensorKey(sample, name), { type, shape, length: bytes.length, place });
    }
  }

  /** Undefined where nothing was written for the sample under the name. */
  async read(sample: number, name: string): Promise<TensorData | undefined> {
    const stored = this.#tensors.get(tensorKey(sample, name));
    if (stored === undefined) return undefined;
    const { type, shape, length, place } = stored;
    if (typeof place !== "number") return { name, type, shape, bytes: place };
    const bytes = new Uint8Array(length);
    if (this.#file !== undefined) {
      await readExactly(this.#file, bytes, place, spoolEndError);
    }
    return { name, type, shape, bytes };
  }

  /** Frees the memory and deletes the file. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#tensors.clear();
    this.#memory.giveBack(this.#memoryBytes);
    this.#memoryBytes = 0;
    if (this.#file === undefined) return;
    await this.#file.close();
    await rm(this.#path, { force: true });
    this.#file = undefined;
  }

  async #store(bytes: Uint8Array): Promise<StoredTensor["place"]> {
    if (this.#memory.take(bytes.length)) {
      this.#memoryBytes += bytes.length;
      return bytes.slice();
    }
    this.#file ??= await open(this.#path, "wx+");
    const offset = this.#fileBytes;
    this.#fileBytes += bytes.length;
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await this.#file.write(bytes, done, undefined, offset + done);
      done += bytesWritten;
    }
    return offset;
  }
}

function tensorKey(sample: number, name: string): string {
  return `${sample}:${name}`;
}

function spoolEndError(): Error {
  return new Error("A file of spooled tensors is shorter than what was written to it");
}

/** Memory that the spools of an evaluation share, bytes. */
export class SpoolMemory {
  #freeBytes: number;

  constructor(bytes: number) {
    this.#freeBytes = bytes;
  }

  /** Takes so many bytes; false where fewer are free. */
  take(bytes: number): boolean {
    if (bytes > this.#freeBytes) return false;
    this.#freeBytes -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#freeBytes += bytes;
  }
}
