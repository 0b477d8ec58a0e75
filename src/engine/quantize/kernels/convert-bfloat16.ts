import { widenHalves } from "./convert-floats.ts";
import { simd } from "./simd.ts";

/** Widens bfloat16 values, which are the upper halves of float32 values. */
export function bfloat16ToFloat32(halves: Uint16Array, into: Float32Array): void {
  widenHalves(halves, into, simd.fromBfloat16);
}

/** Rounds float32 values to bfloat16 (nearest, half to even) and keeps NaN. */
export function float32ToBfloat16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(words, (word) => {
    const isNaN = (word & 0x7f_ff_ff_ff) > 0x7f_80_00_00;
    return isNaN ? (word >>> 16) | 0x40 : (word + 0x7f_ff + ((word >>> 16) & 1)) >>> 16;
  });
}
