import type { ChannelLayout } from "../kernels/channel-layout.ts";
import type { SourceRectangle } from "./source-reader.ts";
import type { TileLimits } from "./tile-limits.ts";
import type { AffineTask } from "./weight-task.ts";

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
