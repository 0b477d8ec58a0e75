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
  const pointBytes = Math.ceil((blocks * bits) / 8);
  const put = bits === 4 ? putHalfByte : putByte;
  for (let output = 0; output < outputs; output++) {
    for (let input = 0; input < inputs; input++) {
      const code = Number(codes[output * inputs + input]);
      put(into.quantizedValues, output * valueElements + input, code);
    }
    if (symmetric) continue;
    const first = output * pointBytes * (8 / bits);
    for (let block = 0; block < blocks; block++) {
      put(into.zeroPoints, first + block, Number(zeroPoints[output * blocks + block]));
    }
    // As ONNX Runtime's quantizer leaves a spare half byte.
    if (bits === 4 && blocks % 2 === 1) putHalfByte(into.zeroPoints, first + blocks, 8);
  }
  into.scales.set(scales);
}

function packColumns(
  { codes, scales, zeroPoints }: FittedBlocks,
  { outputs, inputs, format }: PackOptions,
  into: QuantizedBlocks,
): void {
  const { bits, symmetric } = format;
  const blocks = countBlocks(inputs, format);
  const put = bits === 4 ? putHalfByte : putByte;
  const flip = symmetric ? 2 ** (bits - 1) : 0;
  for (let input = 0; input < inputs; input++) {
    for (let output = 0; output < outputs; output++) {
      const code = Number(codes[output * inputs + input]) ^ flip;
      put(into.quantizedValues, input * outputs + output, code);
    }
  }
  for (let block = 0; block < blocks; block++) {
    for (let output = 0; output < outputs; output++) {
      const [from, to] = [output * blocks + block, block * outputs + output];
      into.scales[to] = Number(scales[from]);
      if (!symmetric) put(into.zeroPoints, to, Number(zeroPoints[from]));
    }
  }
}

function putByte(bytes: Uint8Array, index: number, code: number): void {
  bytes[index] = code;
}

/** Half bytes are put once each, into bytes that were zero. */
function putHalfByte(bytes: Uint8Array, index: number, code: number): void {
  const at = Math.floor(index / 2);
  bytes[at] = Number(bytes[at]) | (code << ((index % 2) * 4));
}
