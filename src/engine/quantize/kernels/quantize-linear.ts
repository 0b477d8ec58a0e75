import type { ErrorSums } from "./error-sums.ts";
import type { ChannelLayout, ValueTile } from "./channel-layout.ts";
import { type ChannelStrip, channelStrips } from "./channel-strips.ts";
import type { AffineParameters } from "./affine-parameters.ts";
import {
  clearKernelSums,
  memoryOffsets,
  simd,
  simdBytes,
  simdFloats,
  addKernelSums,
} from "./simd.ts";

/**
 * Rounds the tile's values (half to even, as QuantizeLinear) with their channel's parameters,
 * writes them to `into` from its beginning, and adds the error to `sums`.
 */
export function quantizeLinear(
  tile: ValueTile,
  { layout, parameters }: { readonly layout: ChannelLayout; readonly parameters: AffineParameters },
  into: Int8Array | Uint8Array,
  sums: ErrorSums,
): void {
  const bytes = new Uint8Array(into.buffer, into.byteOffset, into.length);
  clearKernelSums();
  for (const strip of channelStrips(tile, layout)) {
    stageParameters(strip, parameters);
    runLinearKernel(strip, parameters);
    copyQuantizedValues(strip, bytes);
  }
  addKernelSums(sums);
}

function runLinearKernel(strip: ChannelStrip, { lowest, highest }: AffineParameters): void {
  const { groups, groupStride, vectors, vectorStride } = strip;
  simd.roundLinear(
    memoryOffsets.input,
    groups,
    groupStride,
    vectors,
    vectorStride,
    memoryOffsets.first,
    memoryOffsets.second,
    lowest,
    highest,
    memoryOffsets.codes,
    memoryOffsets.sums,
  );
}

function stageParameters(
  { groups, channelAtLane }: ChannelStrip,
  { scales, zeroPoints }: AffineParameters,
): void {
  for (let lane = 0; lane < groups * 4; lane++) {
    const channel = channelAtLane(lane);
    simdFloats[memoryOffsets.first / 4 + lane] = Number(scales[channel]);
    simdFloats[memoryOffsets.second / 4 + lane] = Number(zeroPoints[channel]);
  }
}

function copyQuantizedValues(
  { from, pieces, length, step, pitch }: ChannelStrip,
  into: Uint8Array,
): void {
  if (length === step && length === pitch) {
    into.set(simdBytes.subarray(memoryOffsets.codes, memoryOffsets.codes + pieces * length), from);
    return;
  }
  for (let piece = 0; piece < pieces; piece++) {
    const start = memoryOffsets.codes + piece * pitch;
    into.set(simdBytes.subarray(start, start + length), from + piece * step);
  }
}
