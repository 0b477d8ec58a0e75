import type { ChannelLayout, ValueTile } from "./channel-layout.ts";
import { type ChannelStrip, channelStrips } from "./channel-strips.ts";
import { clearKernelSums, memoryOffsets, simd, simdFloats } from "./simd.ts";

export interface ChannelRanges {
  readonly min: Float32Array;
  readonly max: Float32Array;
  /** Whether a NaN or an infinity was seen. */
  notFinite: boolean;
}

/** Empty ranges: zero is inside every range. */
export function createChannelRanges({ channels }: ChannelLayout): ChannelRanges {
  return { min: new Float32Array(channels), max: new Float32Array(channels), notFinite: false };
}

/** Widens the ranges by the tile's values. */
export function widenChannelRanges(
  tile: ValueTile,
  layout: ChannelLayout,
  ranges: ChannelRanges,
): void {
  clearKernelSums();
  for (const strip of channelStrips(tile, layout)) {
    runRangeKernel(strip);
    mergeRanges(strip, ranges);
  }
  const seen = simdFloats.subarray(memoryOffsets.counts / 4, memoryOffsets.counts / 4 + 4);
  if (!seen.every((lane) => lane === 0)) ranges.notFinite = true;
}

function runRangeKernel({ groups, groupStride, vectors, vectorStride }: ChannelStrip): void {
  const { input, first, second, counts } = memoryOffsets;
  simdFloats.fill(0, first / 4, first / 4 + groups * 4);
  simdFloats.fill(0, second / 4, second / 4 + groups * 4);
  simd.widenRanges(input, groups, groupStride, vectors, vectorStride, first, second, counts);
}

function mergeRanges({ groups, channelAtLane }: ChannelStrip, { min, max }: ChannelRanges): void {
  for (let lane = 0; lane < groups * 4; lane++) {
    const channel = channelAtLane(lane);
    const low = Number(simdFloats[memoryOffsets.first / 4 + lane]);
    const high = Number(simdFloats[memoryOffsets.second / 4 + lane]);
    if (low < Number(min[channel])) min[channel] = low;
    if (high > Number(max[channel])) max[channel] = high;
  }
}
