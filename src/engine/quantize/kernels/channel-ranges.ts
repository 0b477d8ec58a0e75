/** Where the channels of a flattened tensor are: value i belongs to channel ⌊i / inner⌋ mod channels. */
export interface ChannelLayout {
  /** 1 for a scale of the whole tensor. */
  readonly channels: number;
  readonly inner: number;
}

/** A run of a flattened tensor's values; `start` is the first one's index in the tensor. */
export interface ValueTile {
  readonly values: Float32Array;
  readonly start: number;
}

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
export function widenChannelRanges({ values, start }: ValueTile, layout: ChannelLayout, ranges: ChannelRanges): void {
  const { min, max } = ranges;
  let total = 0;
  let index = 0;
  while (index < values.length) {
    const channel = Math.floor((start + index) / layout.inner) % layout.channels;
    const end = Math.min(values.length, index + layout.inner - ((start + index) % layout.inner));
    let low = Number(min[channel]);
    let high = Number(max[channel]);
    for (; index < end; index++) {
      const value = Number(values[index]);
      if (value < low) low = value;
      if (value > high) high = value;
      total += value - value;
    }
    min[channel] = low;
    max[channel] = high;
  }
  if (total !== 0) ranges.notFinite = true;
}
