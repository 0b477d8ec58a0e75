import { maxDistance } from "../../contract/jobs/model-diff.ts";
import { createRandom } from "../samples/generate-sample.ts";
import { at } from "../onnx/at.ts";
import { TensorProto_DataType as DataType, type TensorProto } from "../onnx/onnx_pb.js";
import type { TensorSource } from "../onnx/read-tensor.ts";
import { elementCount } from "../onnx/tensor-shape.ts";
import { SourceReader } from "../quantize/tasks/source-reader.ts";

const sketchedTypes: ReadonlyMap<number, "float32" | "float16" | "bfloat16"> = new Map([
  [DataType.FLOAT, "float32"],
  [DataType.FLOAT16, "float16"],
  [DataType.BFLOAT16, "bfloat16"],
] as const);

/** The squared distance of two weights is known to a quarter of itself: √(2 / sums). */
const sums = 32;
const blockElements = 65_536;

export interface WeightSketch {
  readonly norm: number;
  readonly sketch: number[];
}

/**
 * Sums of a weight's elements with random signs (a count sketch): the squares of the differences of
 * two weights' sums add up to the square of their distance, on average over the signs. Null for
 * types that are not floating point, and where elements are not finite.
 */
export async function sketchWeight(
  tensor: TensorProto,
  source: TensorSource,
  signal: AbortSignal,
): Promise<WeightSketch | null> {
  const sourceType = sketchedTypes.get(tensor.dataType);
  if (sourceType === undefined) return null;
  const count = elementCount(tensor.dims);
  using reader = new SourceReader({ source, sourceType });
  const buckets = new Float64Array(sums);
  let squares = 0;
  for (let start = 0; start < count; start += blockElements) {
    const columns = Math.min(blockElements, count - start);
    const values = reader.read({ start, rows: 1, columns, pitch: columns });
    squares += addBlock(buckets, values, start / blockElements);
    if (start % (64 * blockElements) === 0) {
      await new Promise(setImmediate);
      signal.throwIfAborted();
    }
  }
  return Number.isFinite(squares) ? { norm: Math.sqrt(squares), sketch: [...buckets] } : null;
}

const signs = drawSigns(blockElements, 1);
const blockSigns = drawSigns(4096, 2);

/** Adds a block's elements to the sums. Gives the sum of their squares. */
function addBlock(buckets: Float64Array, values: Float32Array, block: number): number {
  const sign = at(blockSigns, block % blockSigns.length);
  let squares = 0;
  // One sum after the other stays in a register. Iterators take five times as long, and a function
  // that is called with arrays of other types three times.
  for (let bucket = 0; bucket < sums; bucket++) {
    let sum = 0;
    for (let i = bucket; i < values.length; i += sums) {
      const value = Number(values[i]);
      sum += Number(signs[i]) * value;
      squares += value * value;
    }
    buckets[bucket] = at(buckets, bucket) + sign * sum;
  }
  return squares;
}

function drawSigns(count: number, seed: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length: count }, () => (random() < 0.5 ? -1 : 1));
}

/**
 * Norm of the difference of two weights of the same shape relative to the first one's, estimated;
 * null where they were not sketched.
 */
export function estimateDistance(
  before: { readonly norm: number | null; readonly sketch: readonly number[] | null },
  after: { readonly sketch: readonly number[] | null },
): number | null {
  const { norm, sketch } = before;
  const other = after.sketch;
  if (norm === null || norm === 0 || sketch === null || other?.length !== sketch.length)
    return null;
  const squares = sketch.reduce((sum, value, i) => sum + (value - at(other, i)) ** 2, 0);
  const distance = Math.sqrt(squares) / norm;
  return distance <= maxDistance ? distance : null;
}
