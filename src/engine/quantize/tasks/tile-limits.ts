/** Bounds of what a task has in memory at a time, whatever the shape of its weight. */
export interface TileLimits {
  /** Values of a tile, float32, where blocks and rows allow it. */
  readonly values: number;
  /** Most values of a tile. */
  readonly mostValues: number;
  /** Most bytes of results that wait to be written. */
  readonly resultBytes: number;
}

/** Tiles of 1 MB, which fit the second-level cache, to 4 MB. */
export const defaultTileLimits: TileLimits = {
  values: 256 * 1024,
  mostValues: 1024 * 1024,
  resultBytes: 12 * 1024 * 1024,
};

/** Rows of a tile of a `kn` matrix: pairs of blocks, or one block where a pair is too large. */
export function countTileInputs(blockSize: number, outputs: number, limits: TileLimits): number {
  const unit = 2 * blockSize * outputs <= limits.mostValues ? 2 * blockSize : blockSize;
  return roundDown(limits.values / outputs, unit);
}

/** The largest multiple of `unit` up to a number, but at least one. */
export function roundDown(number: number, unit: number): number {
  return Math.max(1, Math.floor(number / unit)) * unit;
}
