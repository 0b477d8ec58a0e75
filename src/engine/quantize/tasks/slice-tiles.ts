import type { ChannelSlice } from "./channel-slices.ts";
import type { SourceRectangle } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";

/** Values of a slice that are read at once. */
interface SliceTile {
  /** Where the values are in the weight. */
  readonly rectangle: SourceRectangle;
  /** Index of the first value in the slice. */
  readonly start: number;
}

/** Divides a slice into tiles of at most that many values. */
export function* sliceTiles(
  { rectangle: { start, rows, columns, pitch } }: ChannelSlice,
  { values }: TileLimits,
): Generator<SliceTile> {
  const isContiguous = rows === 1 || columns === pitch;
  const [runs, run] = isContiguous ? [1, rows * columns] : [rows, columns];
  const tileRuns = Math.max(1, Math.floor(values / run));
  for (let row = 0; row < runs; row += tileRuns) {
    for (let column = 0; column < run; column += values) {
      const rectangle = {
        start: start + row * pitch + column,
        rows: Math.min(tileRuns, runs - row),
        columns: Math.min(values, run - column),
        pitch,
      };
      yield { rectangle, start: row * run + column };
    }
  }
}
