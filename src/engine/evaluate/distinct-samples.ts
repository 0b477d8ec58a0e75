import { describeShapes } from "./describe-sample.ts";
import type { Sample } from "./tensor-data.ts";

/** Most bytes of all samples together; the first one may have more. */
const maxBytes = 256 * 1024 ** 2;

/** The first sample of each shape, as many as are reasonable to keep in memory. */
export async function findDistinctSamples(samples: AsyncIterable<Sample>): Promise<Sample[]> {
  const byShape = new Map<string, Sample>();
  let bytes = 0;
  for await (const sample of samples) {
    const shapes = describeShapes(sample);
    if (byShape.has(shapes)) continue;
    bytes += sample.reduce((sum, tensor) => sum + tensor.bytes.length, 0);
    if (byShape.size > 0 && bytes > maxBytes) break;
    byShape.set(shapes, sample);
  }
  return [...byShape.values()];
}
