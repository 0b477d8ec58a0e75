import type { ChannelRanges } from "./channel-ranges.ts";

/** The integers that an affine format rounds to. */
export interface AffineFormat {
  readonly type: "int8" | "uint8";
  /** Symmetric: zero point 0 (int8) or 128 (uint8). */
  readonly symmetric: boolean;
  /** Leaves one bit unused, so that products of int8 without VNNI cannot saturate. */
  readonly reduceRange: boolean;
}

export interface AffineParameters {
  readonly scales: Float32Array;
  readonly zeroPoints: Int8Array | Uint8Array;
  readonly lowest: number;
  readonly highest: number;
}

/**
 * Scale and zero point of each channel by the formulas of onnxruntime.quantization's
 * compute_scale_zp: in double precision, then cast; the zero point rounded half to even. A range
 * too small for a scale (all zero) gets scale 1.
 */
export function affineParameters(
  { min, max }: ChannelRanges,
  format: AffineFormat,
): AffineParameters {
  const [lowest, highest] = codeRange(format);
  const channels = min.length;
  const scales = new Float32Array(channels);
  const zeroPoints = format.type === "int8" ? new Int8Array(channels) : new Uint8Array(channels);
  for (let channel = 0; channel < channels; channel++) {
    let low = Number(min[channel]);
    let high = Number(max[channel]);
    if (format.symmetric) {
      high = Math.max(-low, high);
      low = -high;
    }
    const scale = (high - low) / (highest - lowest);
    const usable = scale >= smallestScale;
    scales[channel] = usable ? scale : 1;
    const middle = format.symmetric ? (lowest + highest) / 2 : lowest - low / scale;
    zeroPoints[channel] = usable || format.symmetric ? roundHalfToEven(middle) : 0;
  }
  return { scales, zeroPoints, lowest, highest };
}

/** The smallest normal single-precision number. */
const smallestScale = 2 ** -126;

function codeRange({ type, symmetric, reduceRange }: AffineFormat): [number, number] {
  if (type === "uint8") return reduceRange ? [0, 127] : [0, 255];
  if (reduceRange) return [-64, 64];
  return symmetric ? [-127, 127] : [-128, 127];
}

export function roundHalfToEven(value: number): number {
  const magic = 1.5 * 2 ** 52;
  return value + magic - magic;
}
