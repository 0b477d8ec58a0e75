import { countTileInputs, type TileLimits } from "./tile-limits.ts";
import type { MatrixPanel } from "./matrix-panels.ts";
import type { SourceRectangle } from "./source-reader.ts";
import type { AffineTask, BlockTask } from "./weight-task.ts";
import type { ChannelLayout } from "../kernels/channel-layout.ts";

/** Rows of a panel that are read and quantized at once. */
interface PanelTile {
  /** Where the values are in the matrix. */
  readonly rectangle: SourceRectangle;
  /** In the panel. */
  readonly firstRow: number;
}

/** Divides a panel into tiles within the limits. */
export function* panelTiles(
  { firstInput, inputs, firstOutput, outputs }: MatrixPanel,
  { shape: { order, k, n }, format }: Pick<BlockTask, "shape" | "format">,
  limits: TileLimits,
): Generator<PanelTile> {
  const [rows, columns, pitch] = order === "kn" ? [inputs, outputs, n] : [outputs, inputs, k];
  const start = order === "kn" ? firstInput * n + firstOutput : firstOutput * k + firstInput;
  const tileRows =
    order === "kn"
      ? countTileInputs(format.blockSize, outputs, limits)
      : Math.max(1, Math.floor(limits.values / inputs));
  for (let row = 0; row < rows; row += tileRows) {
    const rectangle = {
      start: start + row * pitch,
      rows: Math.min(tileRows, rows - row),
      columns,
      pitch,
    };
    yield { rectangle, firstRow: row };
  }
}

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

/** Some channels of one of a weight's matrices, as a tensor of their own. */
export interface ChannelSlice {
  readonly matrix: number;
  /** In the matrix. */
  readonly firstChannel: number;
  readonly layout: ChannelLayout;
  /** Where the slice is in the weight. */
  readonly rectangle: SourceRectangle;
}

type SlicedTask = Pick<AffineTask, "elements" | "matrices" | "channels" | "inner">;

/** Divides a weight so that the parameters of a slice's channels are no larger than a tile. */
export function* channelSlices(
  { elements, matrices, channels, inner }: SlicedTask,
  { values }: TileLimits,
): Generator<ChannelSlice> {
  const matrixElements = elements / matrices;
  const run = channels === 1 ? matrixElements : inner;
  const pitch = channels * run;
  for (let matrix = 0; matrix < matrices; matrix++) {
    for (let firstChannel = 0; firstChannel < channels; firstChannel += values) {
      const sliceChannels = Math.min(values, channels - firstChannel);
      const rectangle = {
        start: matrix * matrixElements + firstChannel * run,
        rows: matrixElements / pitch,
        columns: sliceChannels * run,
        pitch,
      };
      yield { matrix, firstChannel, layout: { channels: sliceChannels, inner: run }, rectangle };
    }
  }
}
