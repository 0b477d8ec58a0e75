import { describeShapes } from "./open-samples.ts";
import type { Sample } from "./tensor-data.ts";

/** Most input shapes that are timed: their samples are in memory at once. */
const maxShapes = 4;

/** The first sample of each distinct input shape, of the first few shapes. */
export async function chooseLatencySamples(samples: AsyncIterable<Sample>): Promise<Sample[]> {
  const chosen = new Map<string, Sample>();
  for await (const sample of samples) {
    const shapes = describeShapes(sample);
    if (!chosen.has(shapes)) chosen.set(shapes, sample);
    if (chosen.size === maxShapes) break;
  }
  return [...chosen.values()];
}
