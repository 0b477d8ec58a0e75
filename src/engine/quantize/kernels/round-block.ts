import type { ErrorSums } from "../../evaluate/error-sums.ts";
import type { BlockFormat } from "./block-format.ts";

/** Where the values of one block lie. */
export interface BlockValues {
  readonly values: Float32Array;
  start: number;
  stride: number;
  count: number;
}

const fround = Math.fround;

/**
 * Rounds one block as MLAS does (onnxruntime core/mlas/lib/q4_dq.cpp): the range includes zero, values are multiplied by the
 * reciprocal in single precision, and halves are rounded away from zero. Writes the codes and gives scale and zero point.
 */
export function roundBlock(
  block: BlockValues,
  format: BlockFormat,
  into: Uint8Array,
  sums: ErrorSums,
): { scale: number; zeroPoint: number } {
  const top = 2 ** format.bits - 1;
  const { scale, zeroPoint } = blockScale(block, format);
  const reciprocal = scale === 0 ? 0 : fround(1 / scale);
  let { signal, noise, product, changed, maxAbsoluteError } = sums;
  const { values, start, stride, count } = block;
  for (let index = 0; index < count; index++) {
    const value = Number(values[start + index * stride]);
    const code = clampCode(fround(fround(value * reciprocal) + zeroPoint), top);
    into[index] = code;
    const restored = (code - zeroPoint) * scale;
    const error = restored - value;
    signal += value * value;
    noise += error * error;
    changed += restored * restored;
    product += value * restored;
    maxAbsoluteError = Math.max(maxAbsoluteError, Math.abs(error));
  }
  into.fill(0, count, format.blockSize);
  if (!Number.isFinite(noise)) sums.notFinite = true;
  else Object.assign(sums, { signal, noise, product, changed, maxAbsoluteError });
  return { scale, zeroPoint };
}

function blockScale(block: BlockValues, { bits, symmetric }: BlockFormat): { scale: number; zeroPoint: number } {
  let min = 0;
  let max = 0;
  const { values, start, stride, count } = block;
  for (let index = 0; index < count; index++) {
    const value = Number(values[start + index * stride]);
    if (value < min) min = value;
    if (value > max) max = value;
  }
  const middle = 2 ** (bits - 1);
  if (symmetric) return { scale: fround((Math.abs(max) > Math.abs(min) ? max : min) / -middle), zeroPoint: middle };
  const top = 2 ** bits - 1;
  const scale = fround(fround(max - min) / top);
  return { scale, zeroPoint: scale === 0 ? 0 : clampCode(fround(-min / scale), top) };
}

/** Nearest code, halves away from zero; adding the number just below ½ keeps 0.49999997 from becoming 1. */
function clampCode(value: number, top: number): number {
  return Math.trunc(fround(Math.min(Math.max(value, 0), top) + 0.49999997));
}
