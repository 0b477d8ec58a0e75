import { bfloat16ToFloat32 } from "../quantize/kernels/convert-bfloat16.ts";
import { float16ToFloat32 } from "../quantize/kernels/convert-floats.ts";

/** How a checkpoint stores values: in blocks of so many, each of so many bytes. */
interface EncodingFacts {
  /** Values of a block; the blocks of a row follow one another, and no block spans two rows. */
  readonly blockValues: number;
  readonly blockBytes: number;
  /** Values that share an offset, where there are any. */
  readonly offsetBlock?: number;
  /** Writes the values of whole blocks to `into`, whose length is a multiple of `blockValues`. */
  readonly decode: (bytes: Uint8Array, into: Float32Array) => void;
}

/**
 * The encodings that are read. Names are those of safetensors where it has them, else of GGUF, whose
 * block layouts are defined by `ggml-common.h` and `dequantize_row_*` of llama.cpp. Every value is
 * the one that those give in float32.
 */
export const encodings = {
  F32: { blockValues: 1, blockBytes: 4, decode: decodeF32 },
  F16: { blockValues: 1, blockBytes: 2, decode: decodeF16 },
  BF16: { blockValues: 1, blockBytes: 2, decode: decodeBF16 },
  F8_E4M3: { blockValues: 1, blockBytes: 1, decode: decodeF8E4M3 },
  Q8_0: { blockValues: 32, blockBytes: 34, decode: decodeQ80 },
  Q4_0: { blockValues: 32, blockBytes: 18, decode: decodeQ40 },
  Q4_1: { blockValues: 32, blockBytes: 20, offsetBlock: 32, decode: decodeQ41 },
  Q4_K: { blockValues: 256, blockBytes: 144, offsetBlock: 32, decode: decodeQ4K },
  Q6_K: { blockValues: 256, blockBytes: 210, decode: decodeQ6K },
} as const satisfies Record<string, EncodingFacts>;

export type Encoding = keyof typeof encodings;

/** Bytes of so many values, which must be whole blocks. */
export function encodedBytes(encoding: Encoding, values: number): number {
  const { blockValues, blockBytes } = encodings[encoding];
  if (values % blockValues !== 0) {
    throw new RangeError(`${values} values are no whole blocks of ${encoding}`);
  }
  return (values / blockValues) * blockBytes;
}

/** Values that share an offset in an encoding; undefined where there are no offsets. */
export function findOffsetBlock(encoding: Encoding): number | undefined {
  const { offsetBlock }: EncodingFacts = encodings[encoding];
  return offsetBlock;
}

function decodeF32(bytes: Uint8Array, into: Float32Array): void {
  new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(bytes);
}

function decodeF16(bytes: Uint8Array, into: Float32Array): void {
  float16ToFloat32(new Uint16Array(bytes.buffer, bytes.byteOffset, into.length), into);
}

function decodeBF16(bytes: Uint8Array, into: Float32Array): void {
  bfloat16ToFloat32(new Uint16Array(bytes.buffer, bytes.byteOffset, into.length), into);
}

/** The 256 values of E4M3 without infinities: exponent bias 7, all ones is not a number. */
const e4m3Values = Float32Array.from({ length: 256 }, (_, code) => {
  const [sign, exponent, mantissa] = [code >> 7, (code >> 3) & 15, code & 7];
  if (exponent === 15 && mantissa === 7) return Number.NaN;
  const size = exponent === 0 ? mantissa * 2 ** -9 : (1 + mantissa / 8) * 2 ** (exponent - 7);
  return sign === 1 ? -size : size;
});

function decodeF8E4M3(bytes: Uint8Array, into: Float32Array): void {
  for (let index = 0; index < into.length; index++) {
    into[index] = Number(e4m3Values[Number(bytes[index])]);
  }
}

/** Bytes of an even number as half-precision numbers. */
function asHalves(bytes: Uint8Array): Float16Array {
  return new Float16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
}

/** A block: scale d, 32 signed bytes; d · q. */
function decodeQ80(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let value = 0, at = 0; value < into.length; value += 32, at += 34) {
    const scale = Number(halves[at / 2]);
    for (let index = 0; index < 32; index++) {
      into[value + index] = scale * Number(signed[at + 2 + index]);
    }
  }
}

/** A block: scale d, 16 bytes with values 0 to 15 in low and 16 to 31 in high bits; d · (q − 8). */
function decodeQ40(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let value = 0, at = 0; value < into.length; value += 32, at += 18) {
    const scale = Number(halves[at / 2]);
    for (let index = 0; index < 16; index++) {
      const code = Number(bytes[at + 2 + index]);
      into[value + index] = scale * ((code & 15) - 8);
      into[value + 16 + index] = scale * ((code >> 4) - 8);
    }
  }
}

/**
 * As Q4_0, with a least value m behind the scale; d · q + m. Products are exact in float64 and in
 * float32, so that the one rounding of the sum gives what float32 arithmetic gives.
 */
function decodeQ41(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let value = 0, at = 0; value < into.length; value += 32, at += 20) {
    const [scale, least] = [Number(halves[at / 2]), Number(halves[at / 2 + 1])];
    for (let index = 0; index < 16; index++) {
      const code = Number(bytes[at + 4 + index]);
      into[value + index] = scale * (code & 15) + least;
      into[value + 16 + index] = scale * (code >> 4) + least;
    }
  }
}

/**
 * 256 values in 8 groups of 32. A block: scale d and least value dmin of the groups' own 6-bit
 * scales and least values, 12 bytes of those, 128 bytes of codes; d · scale · q − dmin · least.
 */
function decodeQ4K(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let value = 0, at = 0; value < into.length; value += 256, at += 144) {
    const [scale, least] = [Number(halves[at / 2]), Number(halves[at / 2 + 1])];
    const parameters = bytes.subarray(at + 4, at + 16);
    for (let pair = 0; pair < 4; pair++) {
      const low = groupParameters(parameters, 2 * pair);
      const high = groupParameters(parameters, 2 * pair + 1);
      const [lowScale, lowLeast] = [scale * low.scale, least * low.least];
      const [highScale, highLeast] = [scale * high.scale, least * high.least];
      const [codes, first] = [at + 16 + 32 * pair, value + 64 * pair];
      for (let index = 0; index < 32; index++) {
        const code = Number(bytes[codes + index]);
        into[first + index] = lowScale * (code & 15) - lowLeast;
        into[first + 32 + index] = highScale * (code >> 4) - highLeast;
      }
    }
  }
}

/** Groups 0 to 3 have 6 bits of a byte each; those after have 4 bits there, 2 in the others' bytes. */
function groupParameters(bytes: Uint8Array, group: number): { scale: number; least: number } {
  const byte = (index: number) => Number(bytes[index]);
  if (group < 4) return { scale: byte(group) & 63, least: byte(group + 4) & 63 };
  const rest = byte(group + 4);
  return {
    scale: (rest & 15) | ((byte(group - 4) >> 6) << 4),
    least: (rest >> 4) | ((byte(group) >> 6) << 4),
  };
}

/**
 * 256 values in 16 groups of 16. A block: 128 bytes of low 4 bits, 64 of high 2 bits, a signed byte
 * of scale for each group, scale d; d · scale · (q − 32).
 */
function decodeQ6K(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let value = 0, at = 0; value < into.length; value += 256, at += 210) {
    const scale = Number(halves[at / 2 + 104]);
    for (let index = 0; index < 256; index++) {
      const [half, quarter, within] = [index >> 7, (index >> 5) & 3, index & 31];
      const low = Number(bytes[at + 64 * half + 32 * (quarter & 1) + within]);
      const high = Number(bytes[at + 128 + 32 * half + within]);
      const code = (quarter < 2 ? low & 15 : low >> 4) | (((high >> (2 * quarter)) & 3) << 4);
      const group = Number(signed[at + 192 + (index >> 4)]);
      into[value + index] = scale * group * (code - 32);
    }
  }
}
