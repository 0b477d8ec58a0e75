/**
 * The block encodings of GGUF, whose layouts are defined by `ggml-common.h` and `dequantize_row_*` of
 * llama.cpp. Every value is the one that those give in float32: products are exact in float64 and
 * in float32, so that the one rounding of a sum gives what float32 arithmetic gives.
 *
 * Each function writes the values of whole blocks to `into`.
 */

/** Bytes of an even number as half-precision numbers. */
function asHalves(bytes: Uint8Array): Float16Array {
  return new Float16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
}

/** A block: scale d, 32 signed bytes; d · q. */
export function decodeQ80(bytes: Uint8Array, into: Float32Array): void {
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
export function decodeQ40(bytes: Uint8Array, into: Float32Array): void {
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

/** As Q4_0, with a least value m after the scale; d · q + m. */
export function decodeQ41(bytes: Uint8Array, into: Float32Array): void {
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

/** As Q4_0, with a fifth bit of each value in 4 bytes after the scale; d · (q − 16). */
export function decodeQ50(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let value = 0, at = 0; value < into.length; value += 32, at += 22) {
    const scale = Number(halves[at / 2]);
    for (let index = 0; index < 32; index++) {
      into[value + index] = scale * (fiveBits(bytes, at + 2, index) - 16);
    }
  }
}

/** As Q5_0, with a least value m after the scale; d · q + m. */
export function decodeQ51(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let value = 0, at = 0; value < into.length; value += 32, at += 24) {
    const [scale, least] = [Number(halves[at / 2]), Number(halves[at / 2 + 1])];
    for (let index = 0; index < 32; index++) {
      into[value + index] = scale * fiveBits(bytes, at + 4, index) + least;
    }
  }
}

/** A code of 32, whose fifth bits begin at a byte, with the others after them. */
function fiveBits(bytes: Uint8Array, at: number, index: number): number {
  const low = Number(bytes[at + 4 + (index & 15)]) >> (index & 16 ? 4 : 0);
  const high = Number(bytes[at + (index >> 3)]) >> (index & 7);
  return (low & 15) | ((high & 1) << 4);
}

/**
 * A value of IQ4 by its code
 * (https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-common.h, `kvalues_iq4nl`).
 */
const unevenValues = new Int8Array([
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
]);

/** As Q4_0, with values that are not evenly spaced. */
export function decodeIQ4NL(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let value = 0, at = 0; value < into.length; value += 32, at += 18) {
    fillUneven(bytes.subarray(at + 2), Number(halves[at / 2]), into.subarray(value, value + 32));
  }
}

/**
 * 256 values in 8 groups of 32, each as in IQ4_NL. A block: scale d, the groups' own 6-bit scales as
 * 2 bytes with 2 high bits of each and 4 with 4 low bits, 128 bytes of codes; d · (scale − 32) · q.
 */
export function decodeIQ4XS(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let block = 0, at = 0; block < into.length; block += 256, at += 136) {
    for (let group = 0; group < 8; group++) {
      const low = Number(bytes[at + 4 + (group >> 1)]) >> (4 * (group & 1));
      const high = Number(bytes[at + 2 + (group >> 2)]) >> (2 * (group & 3));
      const scale = Number(halves[at / 2]) * (((low & 15) | ((high & 3) << 4)) - 32);
      const first = block + 32 * group;
      fillUneven(bytes.subarray(at + 8 + 16 * group), scale, into.subarray(first, first + 32));
    }
  }
}

function fillUneven(codes: Uint8Array, scale: number, into: Float32Array): void {
  for (let index = 0; index < 16; index++) {
    const code = Number(codes[index]);
    into[index] = scale * Number(unevenValues[code & 15]);
    into[16 + index] = scale * Number(unevenValues[code >> 4]);
  }
}

/**
 * 256 values in 8 groups of 32. A block: scale d and least value dmin of the groups' own 6-bit
 * scales and least values, 12 bytes of those, 128 bytes of codes; d · scale · q − dmin · least.
 */
export function decodeQ4K(bytes: Uint8Array, into: Float32Array): void {
  decodeGroupsWithLeast(bytes, into, 4);
}

/** As Q4_K, with 32 bytes before the codes, whose bits are the groups' fifth bits. */
export function decodeQ5K(bytes: Uint8Array, into: Float32Array): void {
  decodeGroupsWithLeast(bytes, into, 5);
}

function decodeGroupsWithLeast(bytes: Uint8Array, into: Float32Array, bits: 4 | 5): void {
  const halves = asHalves(bytes);
  const codesAt = bits === 4 ? 16 : 48;
  for (let block = 0, at = 0; block < into.length; block += 256, at += codesAt + 128) {
    const [scale, least] = [Number(halves[at / 2]), Number(halves[at / 2 + 1])];
    const parameters = bytes.subarray(at + 4, at + 16);
    for (let pair = 0; pair < 4; pair++) {
      const low = groupParameters(parameters, 2 * pair);
      const high = groupParameters(parameters, 2 * pair + 1);
      const [lowScale, lowLeast] = [scale * low.scale, least * low.least];
      const [highScale, highLeast] = [scale * high.scale, least * high.least];
      const [codes, first] = [at + codesAt + 32 * pair, block + 64 * pair];
      for (let index = 0; index < 32; index++) {
        const code = Number(bytes[codes + index]);
        const fifths = bits === 4 ? 0 : Number(bytes[at + 16 + index]) >> (2 * pair);
        into[first + index] = lowScale * ((code & 15) | ((fifths & 1) << 4)) - lowLeast;
        into[first + 32 + index] = highScale * ((code >> 4) | ((fifths & 2) << 3)) - highLeast;
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
 * 256 values in 16 groups of 16. A block: a byte with 4 bits of scale and 4 of least value for each
 * group, 64 bytes of 2-bit codes, scale d and least value dmin of those; as in Q4_K.
 */
export function decodeQ2K(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let block = 0, at = 0; block < into.length; block += 256, at += 84) {
    const [scale, least] = [Number(halves[at / 2 + 40]), Number(halves[at / 2 + 41])];
    for (let group = 0; group < 16; group++) {
      const own = Number(bytes[at + group]);
      const [ownScale, ownLeast] = [scale * (own & 15), least * (own >> 4)];
      const { half, quarter, within } = placeOfGroup(group);
      const [codes, first] = [at + 16 + 32 * half + within, block + 16 * group];
      for (let index = 0; index < 16; index++) {
        const code = (Number(bytes[codes + index]) >> (2 * quarter)) & 3;
        into[first + index] = ownScale * code - ownLeast;
      }
    }
  }
}

/**
 * 256 values in 16 groups of 16. A block: 32 bytes whose bits are the values' third bits, 64 of
 * their low 2 bits, 12 with the groups' own 6-bit scales, scale d; d · (scale − 32) · (q − 4).
 */
export function decodeQ3K(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  for (let block = 0, at = 0; block < into.length; block += 256, at += 110) {
    for (let group = 0; group < 16; group++) {
      const lowScale = Number(bytes[at + 96 + (group & 7)]) >> (group < 8 ? 0 : 4);
      const highScale = Number(bytes[at + 104 + (group & 3)]) >> (2 * (group >> 2));
      const own = ((lowScale & 15) | ((highScale & 3) << 4)) - 32;
      const scale = Number(halves[at / 2 + 54]) * own;
      const { half, quarter, within } = placeOfGroup(group);
      const [codes, first] = [at + 32 + 32 * half + within, block + 16 * group];
      for (let index = 0; index < 16; index++) {
        const low = (Number(bytes[codes + index]) >> (2 * quarter)) & 3;
        const high = (Number(bytes[at + within + index]) >> (4 * half + quarter)) & 1;
        into[first + index] = scale * ((low | (high << 2)) - 4);
      }
    }
  }
}

/**
 * 256 values in 16 groups of 16. A block: 128 bytes of low 4 bits, 64 of high 2 bits, a signed byte
 * of scale for each group, scale d; d · scale · (q − 32).
 */
export function decodeQ6K(bytes: Uint8Array, into: Float32Array): void {
  const halves = asHalves(bytes);
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let block = 0, at = 0; block < into.length; block += 256, at += 210) {
    for (let group = 0; group < 16; group++) {
      const scale = Number(halves[at / 2 + 104]) * Number(signed[at + 192 + group]);
      const { half, quarter, within } = placeOfGroup(group);
      const lows = at + 64 * half + 32 * (quarter & 1) + within;
      const [highs, first] = [at + 128 + 32 * half + within, block + 16 * group];
      for (let index = 0; index < 16; index++) {
        const low = (Number(bytes[lows + index]) >> (quarter < 2 ? 0 : 4)) & 15;
        const high = (Number(bytes[highs + index]) >> (2 * quarter)) & 3;
        into[first + index] = scale * ((low | (high << 4)) - 32);
      }
    }
  }
}

/** Of 16: its half of the block, its quarter of that, and its first value within the quarter. */
function placeOfGroup(group: number): { half: number; quarter: number; within: number } {
  return { half: group >> 3, quarter: (group >> 1) & 3, within: 16 * (group & 1) };
}
