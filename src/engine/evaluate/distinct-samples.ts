import { describeShapes } from "./describe-sample.ts";
import type { SampleSource } from "./sample-source.ts";
import type { Sample } from "./tensor-data.ts";

/** Most bytes of all samples together; the first one may have more. */
const maxBytes = 256 * 1024 ** 2;

/**
 * The first sample of each shape, as many as are reasonable to keep in memory. Generated samples
 * all have one shape.
 */
export async function findDistinctSamples({
  data,
  samples,
}: Pick<SampleSource, "data" | "samples">): Promise<Sample[]> {
  const byShape = new Map<string, Sample>();
  let bytes = 0;
  for await (const sample of samples) {
    const shapes = describeShapes(sample);
    if (byShape.has(shapes)) continue;
    bytes += sample.reduce((sum, tensor) => sum + tensor.bytes.length, 0);
    if (byShape.size > 0 && bytes > maxBytes) break;
    byShape.set(shapes, sample);
    if (data === "generated") break;
  }
  return [...byShape.values()];
}
