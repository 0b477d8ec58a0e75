// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
import { addSums } from "./lanes";

/** The least magnitude, as bits of a float32, that rounds to a half-precision infinity (65520). */
const overflow: i32 = 0x477ff000;
const infinity: i32 = 0x7f800000;
/** The least normal half-precision magnitude, 2^-14. */
const leastNormal: i32 = 0x38800000;
const oneHalf: i32 = 0x3f000000;

/**
 * Rounds vectors of float32 to half precision, half to even. Adds to `counts`, four vectors of u32:
 * finite values that overflowed, values that vanished, values that became subnormal, NaN and
 * infinities; `sums` leaves out what is not finite before or after.
 */
export function toHalves(
  input: usize,
  vectors: i32,
  output: usize,
  counts: usize,
  sums: usize,
): void {
  const none = f32x4.splat(0);
  let overflowed = v128.load(counts);
  let vanished = v128.load(counts + 16);
  let subnormal = v128.load(counts + 32);
  let notFinite = v128.load(counts + 48);
  let signal = none;
  let noise = none;
  let product = none;
  let worst = none;
  for (let vector = 0; vector < vectors; vector++) {
    const bits = v128.load(input);
    const magnitude = v128.and(bits, i32x4.splat(0x7fffffff));
    const sign = i32x4.shr_u(v128.xor(bits, magnitude), 16);
    const rounded = roundMantissa(magnitude);
    let half = i32x4.shr_u(i32x4.sub(rounded, i32x4.splat(0x38000000)), 13);
    let value = magnitude;
    let restored = rounded;
    const isSmall = i32x4.lt_s(magnitude, i32x4.splat(leastNormal));
    const isHuge = i32x4.ge_s(magnitude, i32x4.splat(overflow));
    if (v128.any_true(v128.or(isSmall, isHuge))) {
      const shifted = f32x4.add(magnitude, f32x4.splat(0.5));
      const isNotFinite = i32x4.ge_s(magnitude, i32x4.splat(infinity));
      const isNaN = i32x4.gt_s(magnitude, i32x4.splat(infinity));
      half = v128.bitselect(i32x4.sub(shifted, i32x4.splat(oneHalf)), half, isSmall);
      half = v128.bitselect(i32x4.splat(0x7c00), half, isHuge);
      half = v128.or(half, v128.and(isNaN, i32x4.splat(0x200)));
      const isZero = i32x4.eq(half, none);
      overflowed = i32x4.sub(overflowed, v128.andnot(isHuge, isNotFinite));
      vanished = i32x4.sub(vanished, v128.and(isZero, i32x4.ne(magnitude, none)));
      subnormal = i32x4.sub(subnormal, v128.andnot(i32x4.lt_s(half, i32x4.splat(0x400)), isZero));
      notFinite = i32x4.sub(notFinite, isNotFinite);
      value = v128.andnot(magnitude, isHuge);
      const exact = f32x4.sub(shifted, f32x4.splat(0.5));
      restored = v128.andnot(v128.bitselect(exact, rounded, isSmall), isHuge);
    }
    const error = f32x4.sub(restored, value);
    signal = f32x4.add(signal, f32x4.mul(value, value));
    noise = f32x4.add(noise, f32x4.mul(error, error));
    product = f32x4.add(product, f32x4.mul(value, error));
    worst = f32x4.pmax(worst, f32x4.abs(error));

    half = v128.or(half, sign);
    v128.store_lane<u64>(output, i16x8.narrow_i32x4_u(half, half), 0);
    input += 16;
    output += 8;
  }
  v128.store(counts, overflowed);
  v128.store(counts + 16, vanished);
  v128.store(counts + 32, subnormal);
  v128.store(counts + 48, notFinite);
  addSums(sums, f32x4.splat(1), signal, noise, product, worst);
}

/** Rounds float32 magnitudes, as bits, to the mantissa of half precision, half to even. */
function roundMantissa(magnitude: v128): v128 {
  const odd = v128.and(i32x4.shr_u(magnitude, 13), i32x4.splat(1));
  const raised = i32x4.add(i32x4.add(magnitude, i32x4.splat(0xfff)), odd);
  return v128.and(raised, i32x4.splat(~0x1fff));
}

/** Widens vectors of four half-precision values to float32. */
export function fromHalves(input: usize, vectors: i32, output: usize): void {
  // Taken for a float32, a shifted half is too small by 2^112, and its infinity is this.
  const rebias = f32x4.splat(reinterpret<f32>(0x77800000));
  const shiftedInfinity = i32x4.splat(0x7c00 << 13);
  for (let vector = 0; vector < vectors; vector++) {
    const half = v128.load_ext<u16>(input);
    const magnitude = i32x4.shl(v128.and(half, i32x4.splat(0x7fff)), 13);
    const sign = i32x4.shl(v128.and(half, i32x4.splat(0x8000)), 16);
    const isNotFinite = i32x4.ge_s(magnitude, shiftedInfinity);
    const value = v128.or(
      f32x4.mul(magnitude, rebias),
      v128.and(isNotFinite, i32x4.splat(infinity)),
    );
    v128.store(output, v128.or(value, sign));
    input += 8;
    output += 16;
  }
}

/** Widens vectors of four bfloat16 values, which are the upper halves of float32 values. */
export function fromBfloat16(input: usize, vectors: i32, output: usize): void {
  for (let vector = 0; vector < vectors; vector++) {
    v128.store(output, i32x4.shl(v128.load_ext<u16>(input), 16));
    input += 8;
    output += 16;
  }
}
