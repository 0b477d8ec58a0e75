import type { Literal } from "./model-layout.ts";
import { concatBytes } from "./wire-format.ts";

/** Collects the bytes of a file that are known, around gaps for those that are not. */
export class LiteralBuilder {
  /** Bytes of the file so far, gaps included. */
  length = 0;
  readonly #literals: Literal[] = [];
  #start = 0;
  #pending: Uint8Array[] = [];

  append(bytes: Uint8Array): void {
    this.#pending.push(bytes);
    this.length += bytes.length;
  }

  /** Leaves a gap. */
  skip(length: number): void {
    this.#flush();
    this.length += length;
    this.#start = this.length;
  }

  finish(): readonly Literal[] {
    this.#flush();
    return this.#literals;
  }

  #flush(): void {
    this.#literals.push({ offset: this.#start, bytes: concatBytes(this.#pending) });
    this.#pending = [];
  }
}
