import { type BlockFormat, countBlocks, type QuantizedBlocks } from "./block-format.ts";
import type { FittedBlocks } from "./fit-blocks.ts";

interface PackOptions {
  readonly outputs: number;
  readonly inputs: number;
  readonly format: BlockFormat;
  /** As a task has it. */
  readonly layout: "matmul" | "gather" | "columns" | "rows";
}

/** Brings fitted codes, scales and zero points into the layout of the operator that takes them. */
export function packFittedBlocks(
  fitted: FittedBlocks,
  options: PackOptions,
  into: QuantizedBlocks,
): void {
  if (options.layout === "columns") packColumns(fitted, options, into);
  else packRows(fitted, options, into);
}

function packRows(
  { codes, scales, zeroPoints }: FittedBlocks,
  { outputs, inputs, format }: PackOptions,
  into: QuantizedBlocks,
): void {
  const { bits, symmetric } = format;
  const blocks = countBlocks(inputs, format);
  const valueElements = (into.quantizedValues.length / outputs) * (8 / bits);
  const pointElements = Math.ceil((blocks * bits) / 8) * (8 / bits);
  const put = bits === 4 ? putHalfByte : putByte;
  for (let input = 0; input < inputs; input++) {
    for (let output = 0; output < outputs; output++) {
      const code = Number(codes[input * outputs + output]);
      put(into.quantizedValues, output * valueElements + input, code);
    }
  }
  for (let block = 0; block < blocks; block++) {
    for (let output = 0; output < outputs; output++) {
      const from = block * outputs + output;
      into.scales[output * blocks + block] = Number(scales[from]);
      if (symmetric) continue;
      put(into.zeroPoints, output * pointElements + block, Number(zeroPoints[from]));
    }
  }
  if (symmetric || bits === 8 || blocks % 2 === 0) return;
  // As ONNX Runtime's quantizer leaves a spare half byte.
  for (let output = 0; output < outputs; output++) {
    putHalfByte(into.zeroPoints, output * pointElements + blocks, 8);
  }
}

function packColumns(
  { codes, scales, zeroPoints }: FittedBlocks,
  { format: { bits, symmetric } }: PackOptions,
  into: QuantizedBlocks,
): void {
  const put = bits === 4 ? putHalfByte : putByte;
  const flip = symmetric ? 2 ** (bits - 1) : 0;
  for (const [index, code] of codes.entries()) put(into.quantizedValues, index, code ^ flip);
  into.scales.set(scales);
  if (symmetric) return;
  for (const [index, point] of zeroPoints.entries()) put(into.zeroPoints, index, point);
}

function putByte(bytes: Uint8Array, index: number, code: number): void {
  bytes[index] = code;
}

/** Half bytes are put once each, into bytes that were zero. */
function putHalfByte(bytes: Uint8Array, index: number, code: number): void {
  const at = index >> 1;
  bytes[at] = Number(bytes[at]) | (code << ((index & 1) * 4));
}
