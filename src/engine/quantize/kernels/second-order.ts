import { secondOrderModule } from "./second-order-module.ts";

/** Exports of assembly/second-order.ts; all numbers are addresses, byte strides or counts. */
interface SecondOrderKernels {
  readonly memory: { readonly buffer: ArrayBuffer; readonly grow: (pages: number) => number };
  factorize: (matrix: number, size: number) => number;
  addProducts: (...numbers: number[]) => void;
  roundInputs: (...numbers: number[]) => void;
  chooseScales: (...numbers: number[]) => void;
}

declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: SecondOrderKernels };
};

const compiled = new WebAssembly.Module(Buffer.from(secondOrderModule, "base64"));

const pageBytes = 65_536;

/** Kernels on matrices, with a memory of their own that grows with what is placed in it. */
export class MatrixMemory {
  readonly kernels: SecondOrderKernels = new WebAssembly.Instance(compiled).exports;
  #end = 0;

  /** @returns the address of so many bytes, which may hold anything */
  allocate(bytes: number): number {
    const start = this.#end;
    this.#end += Math.ceil(bytes / 16) * 16;
    const missing = this.#end - this.kernels.memory.buffer.byteLength;
    if (missing > 0) this.kernels.memory.grow(Math.ceil(missing / pageBytes));
    return start;
  }

  /** Frees what is at an address, and all that was allocated after it, for the next matrices. */
  free(address: number): void {
    this.#end = address;
  }

  /** A view, which is good until the next call of `allocate`. */
  floats(address: number, length: number): Float32Array {
    return new Float32Array(this.kernels.memory.buffer, address, length);
  }

  /** A view, which is good until the next call of `allocate`. */
  integers(address: number, length: number): Uint32Array {
    return new Uint32Array(this.kernels.memory.buffer, address, length);
  }

  /** A view, which is good until the next call of `allocate`. */
  bytes(address: number, length: number): Uint8Array {
    return new Uint8Array(this.kernels.memory.buffer, address, length);
  }

  /** A view, which is good until the next call of `allocate`. */
  doubles(address: number, length: number): Float64Array {
    return new Float64Array(this.kernels.memory.buffer, address, length);
  }
}
