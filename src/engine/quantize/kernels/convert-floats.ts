import type { ErrorSums } from "../../evaluate/error-sums.ts";
import { clearSums, places, simd, simdFloats, simdHalves, simdWords, stripValues, takeSums } from "./simd.ts";

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
export function float32ToFloat16(values: Float32Array, into: Uint16Array, losses: HalfLosses, sums: ErrorSums): void {
  clearSums();
  for (let start = 0; start < values.length; start += stripValues) {
    const part = values.subarray(start, start + stripValues);
    const vectors = Math.ceil(part.length / 4);
    simdFloats.set(part, places.input / 4);
    simdFloats.fill(0, places.input / 4 + part.length, places.input / 4 + vectors * 4);
    simd.toHalves(places.input, vectors, places.codes, places.counts, places.sums);
    into.set(simdHalves.subarray(places.codes / 2, places.codes / 2 + part.length), start);
  }
  const overflowed = takeCount(0);
  losses.overflowed += overflowed;
  losses.vanished += takeCount(1);
  losses.subnormal += takeCount(2);
  if (overflowed + takeCount(3) > 0) sums.notFinite = true;
  takeSums(sums);
}

function takeCount(index: number): number {
  const at = places.counts / 4 + index * 4;
  return simdWords.subarray(at, at + 4).reduce((total, lane) => total + lane, 0);
}

/** Exact. */
export function float16ToFloat32(halves: Uint16Array, into: Float32Array): void {
  for (let start = 0; start < halves.length; start += stripValues) {
    const part = halves.subarray(start, start + stripValues);
    simdHalves.set(part, places.codes / 2);
    simd.fromHalves(places.codes, Math.ceil(part.length / 4), places.input);
    into.set(simdFloats.subarray(places.input / 4, places.input / 4 + part.length), start);
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
