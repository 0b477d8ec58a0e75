import type { ErrorSums } from "../../evaluate/error-sums.ts";
import type { ChannelLayout, ValueTile } from "./channel-layout.ts";
import { type ChannelStrip, channelStrips } from "./channel-strips.ts";
import type { LinearCodes } from "./linear-codes.ts";
import { clearSums, places, simd, simdBytes, simdFloats, takeSums } from "./simd.ts";

/**
 * Rounds the tile's values (half to even, as QuantizeLinear) to codes of their channel, written to `into` from its beginning, and adds the
 * error to `sums`.
 */
export function quantizeLinear(
  tile: ValueTile,
  { layout, codes }: { readonly layout: ChannelLayout; readonly codes: LinearCodes },
  into: Int8Array | Uint8Array,
  sums: ErrorSums,
): void {
  const bytes = new Uint8Array(into.buffer, into.byteOffset, into.length);
  clearSums();
  for (const strip of channelStrips(tile, layout)) {
    const { groups, groupStride, vectors, vectorStride } = strip;
    putParameters(strip, codes);
    simd.roundLinear(
      places.input,
      groups,
      groupStride,
      vectors,
      vectorStride,
      places.first,
      places.second,
      codes.lowest,
      codes.highest,
      places.codes,
      places.sums,
    );
    takeCodes(strip, bytes);
  }
  takeSums(sums);
}

function putParameters({ groups, channelOf }: ChannelStrip, { scales, zeroPoints }: LinearCodes): void {
  for (let lane = 0; lane < groups * 4; lane++) {
    const channel = channelOf(lane);
    simdFloats[places.first / 4 + lane] = Number(scales[channel]);
    simdFloats[places.second / 4 + lane] = Number(zeroPoints[channel]);
  }
}

function takeCodes({ from, pieces, length, step, pitch }: ChannelStrip, into: Uint8Array): void {
  if (length === step && length === pitch) {
    into.set(simdBytes.subarray(places.codes, places.codes + pieces * length), from);
    return;
  }
  for (let piece = 0; piece < pieces; piece++) {
    const start = places.codes + piece * pitch;
    into.set(simdBytes.subarray(start, start + length), from + piece * step);
  }
}
