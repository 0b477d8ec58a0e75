import { bfloat16ToFloat32 } from "../quantize/kernels/convert-bfloat16.ts";
import { float16ToFloat32 } from "../quantize/kernels/convert-floats.ts";
import {
  decodeIQ4NL,
  decodeIQ4XS,
  decodeQ2K,
  decodeQ3K,
  decodeQ40,
  decodeQ41,
  decodeQ4K,
  decodeQ50,
  decodeQ51,
  decodeQ5K,
  decodeQ6K,
  decodeQ80,
} from "./gguf-blocks.ts";

/** How a checkpoint stores values: in blocks of so many, each of so many bytes. */
interface EncodingFacts {
  /** Values of a block; the blocks of a row follow one another, and no block spans two rows. */
  readonly blockValues: number;
  readonly blockBytes: number;
  /** Values that share an offset, where they are 4 bits. */
  readonly offsetBlock?: number;
  /** Writes the values of whole blocks to `into`, whose length is a multiple of `blockValues`. */
  readonly decode: (bytes: Uint8Array, into: Float32Array) => void;
}

/** The encodings that are read. Names are those of safetensors where it has them, else of GGUF. */
export const encodings = {
  F32: { blockValues: 1, blockBytes: 4, decode: decodeF32 },
  F16: { blockValues: 1, blockBytes: 2, decode: decodeF16 },
  BF16: { blockValues: 1, blockBytes: 2, decode: decodeBF16 },
  F8_E4M3: { blockValues: 1, blockBytes: 1, decode: decodeF8E4M3 },
  Q8_0: { blockValues: 32, blockBytes: 34, decode: decodeQ80 },
  Q4_0: { blockValues: 32, blockBytes: 18, decode: decodeQ40 },
  Q4_1: { blockValues: 32, blockBytes: 20, offsetBlock: 32, decode: decodeQ41 },
  Q5_0: { blockValues: 32, blockBytes: 22, decode: decodeQ50 },
  Q5_1: { blockValues: 32, blockBytes: 24, decode: decodeQ51 },
  Q2_K: { blockValues: 256, blockBytes: 84, decode: decodeQ2K },
  Q3_K: { blockValues: 256, blockBytes: 110, decode: decodeQ3K },
  Q4_K: { blockValues: 256, blockBytes: 144, offsetBlock: 32, decode: decodeQ4K },
  Q5_K: { blockValues: 256, blockBytes: 176, decode: decodeQ5K },
  Q6_K: { blockValues: 256, blockBytes: 210, decode: decodeQ6K },
  IQ4_NL: { blockValues: 32, blockBytes: 18, decode: decodeIQ4NL },
  IQ4_XS: { blockValues: 256, blockBytes: 136, decode: decodeIQ4XS },
} as const satisfies Record<string, EncodingFacts>;

export type Encoding = keyof typeof encodings;

/** Bytes of so many values, which must be whole blocks. */
export function encodedBytes(encoding: Encoding, values: number): number {
  const { blockValues, blockBytes } = encodings[encoding];
  if (values % blockValues !== 0) {
    throw new RangeError(`${values} values are not whole blocks of ${encoding}`);
  }
  return (values / blockValues) * blockBytes;
}

/** Values of 4 bits that share an offset in an encoding; undefined for others. */
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
