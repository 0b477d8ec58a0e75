import type { ErrorSums } from "../../evaluate/error-sums.ts";
import {
  clearKernelSums,
  memoryOffsets,
  simd,
  simdFloats,
  simdHalves,
  simdWords,
  stripValues,
  addKernelSums,
} from "./simd.ts";

/** What a conversion to half precision did to the values. */
export interface HalfLosses {
  /** Finite values that became an infinity. */
  overflowed: number;
  /** Values other than zero that became zero. */
  vanished: number;
  /** Values that became subnormal, with fewer than 11 bits. */
  subnormal: number;
}

/** Rounds to half precision (nearest, half to even) and adds the losses and the error. */
export function float32ToFloat16(
  values: Float32Array,
  into: Uint16Array,
  losses: HalfLosses,
  sums: ErrorSums,
): void {
  clearKernelSums();
  for (let start = 0; start < values.length; start += stripValues) {
    const part = values.subarray(start, start + stripValues);
    const vectors = Math.ceil(part.length / 4);
    simdFloats.set(part, memoryOffsets.input / 4);
    simdFloats.fill(
      0,
      memoryOffsets.input / 4 + part.length,
      memoryOffsets.input / 4 + vectors * 4,
    );
    simd.toHalves(
      memoryOffsets.input,
      vectors,
      memoryOffsets.codes,
      memoryOffsets.counts,
      memoryOffsets.sums,
    );
    into.set(
      simdHalves.subarray(memoryOffsets.codes / 2, memoryOffsets.codes / 2 + part.length),
      start,
    );
  }
  const overflowed = sumCounts(0);
  losses.overflowed += overflowed;
  losses.vanished += sumCounts(1);
  losses.subnormal += sumCounts(2);
  if (overflowed + sumCounts(3) > 0) sums.notFinite = true;
  addKernelSums(sums);
}

function sumCounts(index: number): number {
  const at = memoryOffsets.counts / 4 + index * 4;
  return simdWords.subarray(at, at + 4).reduce((total, lane) => total + lane, 0);
}

/** Exact. */
export function float16ToFloat32(halves: Uint16Array, into: Float32Array): void {
  for (let start = 0; start < halves.length; start += stripValues) {
    const part = halves.subarray(start, start + stripValues);
    simdHalves.set(part, memoryOffsets.codes / 2);
    simd.fromHalves(memoryOffsets.codes, Math.ceil(part.length / 4), memoryOffsets.input);
    into.set(
      simdFloats.subarray(memoryOffsets.input / 4, memoryOffsets.input / 4 + part.length),
      start,
    );
  }
}

/** Exact. */
export function bfloat16ToFloat32(values: Uint16Array, into: Float32Array): void {
  const bits = new Uint32Array(into.buffer, into.byteOffset, into.length);
  for (let index = 0; index < values.length; index++) bits[index] = Number(values[index]) << 16;
}

/** Rounds to single precision; a finite value beyond its range becomes an infinity. */
export function float64ToFloat32(values: Float64Array, into: Float32Array): void {
  into.set(values);
}
