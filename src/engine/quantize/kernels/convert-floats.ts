import type { ErrorSums } from "./error-sums.ts";
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
interface HalfLosses {
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
  const overflowed = roundToFloat16(values, into);
  losses.overflowed += overflowed;
  losses.vanished += sumCounts(1);
  losses.subnormal += sumCounts(2);
  if (overflowed + sumCounts(3) > 0) sums.notFinite = true;
  addKernelSums(sums);
}

/**
 * Rounds to half precision (nearest, half to even).
 * @returns how many finite values became an infinity
 */
export function roundToFloat16(values: Float32Array, into: Uint16Array): number {
  clearKernelSums();
  for (let start = 0; start < values.length; start += stripValues) {
    into.set(roundToHalves(values.subarray(start, start + stripValues)), start);
  }
  return sumCounts(0);
}

/** The result is in the kernels' memory. */
function roundToHalves(values: Float32Array): Uint16Array {
  const { input, codes, counts, sums } = memoryOffsets;
  const vectors = Math.ceil(values.length / 4);
  simdFloats.set(values, input / 4);
  simdFloats.fill(0, input / 4 + values.length, input / 4 + vectors * 4);
  simd.toHalves(input, vectors, codes, counts, sums);
  return simdHalves.subarray(codes / 2, codes / 2 + values.length);
}

function sumCounts(index: number): number {
  const at = memoryOffsets.counts / 4 + index * 4;
  return simdWords.subarray(at, at + 4).reduce((total, lane) => total + lane, 0);
}

/** Widens half-precision values, which single precision has exactly. */
export function float16ToFloat32(halves: Uint16Array, into: Float32Array): void {
  widenHalves(halves, into, simd.fromHalves);
}

/** Widens values of 16 bits, strip by strip in the kernels' memory. */
export function widenHalves(
  halves: Uint16Array,
  into: Float32Array,
  kernel: (input: number, vectors: number, output: number) => void,
): void {
  for (let start = 0; start < halves.length; start += stripValues) {
    const part = halves.subarray(start, start + stripValues);
    simdHalves.set(part, memoryOffsets.codes / 2);
    kernel(memoryOffsets.codes, Math.ceil(part.length / 4), memoryOffsets.input);
    const first = memoryOffsets.input / 4;
    into.set(simdFloats.subarray(first, first + part.length), start);
  }
}
