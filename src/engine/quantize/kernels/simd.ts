import type { ErrorSums } from "./error-sums.ts";
import { simdModule } from "./simd-module.ts";

/** Exports of assembly/kernels.ts; all numbers are addresses, byte strides, counts or limits. */
interface SimdKernels {
  readonly memory: { readonly buffer: ArrayBuffer };
  roundColumns: (...numbers: number[]) => void;
  roundRows: (...numbers: number[]) => void;
  widenRanges: (...numbers: number[]) => void;
  roundLinear: (...numbers: number[]) => void;
  toHalves: (...numbers: number[]) => void;
  fromHalves: (...numbers: number[]) => void;
  fromBfloat16: (...numbers: number[]) => void;
}

declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: SimdKernels };
};

const compiled = new WebAssembly.Module(Buffer.from(simdModule, "base64"));

/**
 * The compiled kernels of this thread. They work on a small memory of their own, in which callers
 * stage a strip of a weight.
 */
export const simd: SimdKernels = new WebAssembly.Instance(compiled).exports;

/** Values that are staged at once: they and their codes stay in the second-level cache. */
export const stripValues = 32 * 1024;

/** Offsets in the kernels' memory, bytes. A strip may be padded to half as much again. */
export const memoryOffsets = {
  sums: 0,
  counts: 64,
  panel: 4 * 1024,
  first: 16 * 1024,
  second: 64 * 1024,
  codes: 128 * 1024,
  input: 256 * 1024,
} as const;

const buffer = simd.memory.buffer;
export const simdBytes = new Uint8Array(buffer);
export const simdHalves = new Uint16Array(buffer);
export const simdWords = new Uint32Array(buffer);
export const simdFloats = new Float32Array(buffer);
const sumPairs = new Float64Array(buffer, memoryOffsets.sums, 6);
const worst = new Float32Array(buffer, memoryOffsets.sums + 48, 4);

/** Clears the sums and counts that kernels add to. */
export function clearKernelSums(): void {
  simdWords.fill(0, 0, memoryOffsets.panel / 4);
}

/** Adds the kernels' sums to the caller's, and marks them if a value or scale was not finite. */
export function addKernelSums(sums: ErrorSums): void {
  const pair = (index: number): number => Number(sumPairs[index]) + Number(sumPairs[index + 1]);
  const signal = pair(0);
  const noise = pair(2);
  const product = pair(4);
  if (!Number.isFinite(signal + noise + product)) {
    sums.notFinite = true;
    return;
  }
  sums.signal += signal;
  sums.noise += noise;
  sums.changed += signal + 2 * product + noise;
  sums.product += signal + product;
  sums.maxAbsoluteError = Math.max(sums.maxAbsoluteError, ...worst);
}
