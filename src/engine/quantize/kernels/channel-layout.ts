/** Channels of a flattened tensor: value i belongs to channel ⌊i / inner⌋ mod channels. */
export interface ChannelLayout {
  /** 1 for a scale of the whole tensor; `inner` does not matter then. */
  readonly channels: number;
  readonly inner: number;
}

/** A run of a flattened tensor's values; `start` is the first one's index in the tensor. */
export interface ValueTile {
  readonly values: Float32Array;
  readonly start: number;
}

export function roundUpToFour(count: number): number {
  return Math.ceil(count / 4) * 4;
}
