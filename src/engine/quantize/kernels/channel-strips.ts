import { type ChannelLayout, roundUpToFour, type ValueTile } from "./channel-layout.ts";
import { memoryOffsets, simdFloats, stripValues } from "./simd.ts";

/**
 * A part of a tensor staged at `memoryOffsets.input`: `pieces` runs of `length` values,
 * `step` apart in the tile and `pitch` apart as staged. Kernels see groups of four lanes; each
 * group has its own vector of parameters, and `channelAtLane` gives the channels of
 * its lanes.
 */
export interface ChannelStrip {
  /** The strip's first value in the tile. */
  readonly from: number;
  readonly pieces: number;
  readonly length: number;
  readonly step: number;
  readonly pitch: number;
  readonly groups: number;
  /** Strides in bytes. */
  readonly groupStride: number;
  readonly vectors: number;
  readonly vectorStride: number;
  readonly channelAtLane: (lane: number) => number;
}

/** Shorter runs of one channel than this are quantized across channels and not along the run. */
const shortRun = 16;
/** Columns of a strip that is quantized across channels. */
const widestStrip = 1024;
/** Keeps the rows of a strip from falling on the same few cache sets. */
const paddedLanes = 16;

/** Stages a tile strip by strip. */
export function* channelStrips(tile: ValueTile, layout: ChannelLayout): Generator<ChannelStrip> {
  const across = layout.channels > 1 && layout.inner < shortRun;
  let from = 0;
  while (from < tile.values.length) {
    const strips = across
      ? stripsAcrossChannels(tile, layout, from)
      : [stripAlongRun(tile, layout, from)];
    for (const strip of strips) {
      stageStrip(tile.values, strip);
      yield strip;
      from = Math.max(from, strip.from + (strip.pieces - 1) * strip.step + strip.length);
    }
  }
}

/** Whole runs of one channel each, or a part of one. */
function stripAlongRun(
  { values, start }: ValueTile,
  { channels, inner }: ChannelLayout,
  from: number,
): ChannelStrip {
  const rest = values.length - from;
  const run = channels === 1 ? Infinity : inner;
  const within = channels === 1 ? 0 : (start + from) % inner;
  const first = channels === 1 ? 0 : Math.floor((start + from) / inner) % channels;
  const isWholeRun = within === 0 && run <= Math.min(rest, stripValues);
  const length = isWholeRun ? run : Math.min(run - within, rest, stripValues);
  const pitch = roundUpToFour(length);
  const pieces = isWholeRun ? Math.min(Math.floor(rest / run), Math.floor(stripValues / pitch)) : 1;
  return {
    from,
    pieces,
    length,
    step: length,
    pitch,
    groups: pieces,
    groupStride: pitch * 4,
    vectors: pitch / 4,
    vectorStride: 16,
    channelAtLane: (lane) => (first + (lane >> 2)) % channels,
  };
}

/** As many whole rounds over all channels as there are from here on, or a part of one. */
function* stripsAcrossChannels(
  { values, start }: ValueTile,
  layout: ChannelLayout,
  from: number,
): Generator<ChannelStrip> {
  const { channels, inner } = layout;
  const round = channels * inner;
  const rest = values.length - from;
  const within = (start + from) % round;
  const isWholeRound = within === 0 && rest >= round;
  const width = isWholeRound ? round : Math.min(round - within, rest);
  const rows = isWholeRound ? Math.floor(rest / round) : 1;
  const pitch = roundUpToFour(Math.min(width, widestStrip)) + paddedLanes;
  const rowsAtOnce = Math.floor(stripValues / pitch);
  for (let row = 0; row < rows; row += rowsAtOnce) {
    for (let column = 0; column < width; column += widestStrip) {
      const length = Math.min(widestStrip, width - column);
      const pieces = Math.min(rowsAtOnce, rows - row);
      const first = within + column;
      yield {
        from: from + row * round + column,
        pieces,
        length,
        step: round,
        pitch,
        groups: roundUpToFour(length) / 4,
        groupStride: 16,
        vectors: pieces,
        vectorStride: pitch * 4,
        channelAtLane: (lane) => Math.min(channels - 1, Math.floor((first + lane) / inner)),
      };
    }
  }
}

/** Copies the pieces, and zeros for as many values as each lacks to a multiple of four. */
function stageStrip(
  values: Float32Array,
  { from, pieces, length, step, pitch }: ChannelStrip,
): void {
  const input = memoryOffsets.input / 4;
  if (length === step && length === pitch) {
    simdFloats.set(values.subarray(from, from + pieces * length), input);
    return;
  }
  for (let piece = 0; piece < pieces; piece++) {
    const start = from + piece * step;
    const to = input + piece * pitch;
    simdFloats.set(values.subarray(start, start + length), to);
    if (length % 4 > 0) simdFloats.fill(0, to + length, to + roundUpToFour(length));
  }
}
