import type { ErrorSums } from "../../evaluate/error-sums.ts";

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
  const halves = new Float16Array(into.buffer, into.byteOffset, into.length);
  let { signal, noise, product, changed, maxAbsoluteError } = sums;
  for (let index = 0; index < values.length; index++) {
    const value = Number(values[index]);
    halves[index] = value;
    const restored = Number(halves[index]);
    const error = restored - value;
    if (!Number.isFinite(restored)) {
      if (Number.isFinite(value)) losses.overflowed++;
      sums.notFinite = true;
      continue;
    }
    if (restored === 0 && value !== 0) losses.vanished++;
    else if (value !== 0 && Math.abs(restored) < 2 ** -14) losses.subnormal++;
    signal += value * value;
    noise += error * error;
    changed += restored * restored;
    product += value * restored;
    maxAbsoluteError = Math.max(maxAbsoluteError, Math.abs(error));
  }
  Object.assign(sums, { signal, noise, product, changed, maxAbsoluteError });
}

export function float16ToFloat32(halves: Uint16Array, into: Float32Array): void {
  into.set(new Float16Array(halves.buffer, halves.byteOffset, halves.length));
}

export function bfloat16ToFloat32(values: Uint16Array, into: Float32Array): void {
  const bits = new Uint32Array(into.buffer, into.byteOffset, into.length);
  for (let index = 0; index < values.length; index++) bits[index] = Number(values[index]) << 16;
}

/** Rounds to single precision; a finite value beyond its range becomes an infinity. */
export function float64ToFloat32(values: Float64Array, into: Float32Array): void {
  into.set(values);
}
