import { toBinary } from "@bufbuild/protobuf";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { ModelProtoSchema } from "../../../src/engine/onnx/onnx_pb.js";
import type { ModelProto } from "../../../src/engine/onnx/onnx_pb.js";

type Shapes = Readonly<Record<string, readonly number[]>>;

/** Runs a model without graph optimizations on random float32 inputs, the same for every call. */
export async function runModel(
  model: ModelProto,
  openShapes: Shapes = {},
): Promise<InferenceSession.OnnxValueMapType> {
  const session = await InferenceSession.create(toBinary(ModelProtoSchema, model), {
    graphOptimizationLevel: "disabled",
    logSeverityLevel: 3,
    intraOpNumThreads: 1,
  });
  const normal = createNormal(createRandom(1));
  const feeds = session.inputMetadata.map((input) => {
    const declared = input.isTensor ? input.shape.map(Number) : [];
    const shape = openShapes[input.name] ?? declared;
    const size = shape.reduce((product, dimension) => product * dimension, 1);
    if (input.isTensor && input.type === "int64") {
      return [
        input.name,
        new Tensor("int64", new BigInt64Array(size).fill(16_000n), shape),
      ] as const;
    }
    return [input.name, new Tensor(Float32Array.from({ length: size }, normal), shape)] as const;
  });
  const outputs = await session.run(Object.fromEntries(feeds));
  await session.release();
  return outputs;
}

/** Largest difference between two runs; Infinity where a shape differs or one has no number where the other has. */
export function largestDifference(
  left: InferenceSession.OnnxValueMapType,
  right: InferenceSession.OnnxValueMapType,
): number {
  const differences = Object.entries(left).map(([name, { data, dims }]) => {
    const other = right[name];
    if (other === undefined || other.dims.join() !== dims.join()) return Infinity;
    const numbers = Array.from(other.data, Number);
    return Array.from(data, Number).reduce((largest, number, index) => {
      const difference = Object.is(number, numbers[index])
        ? 0
        : Math.abs(number - (numbers[index] ?? NaN));
      return Math.max(largest, Number.isNaN(difference) ? Infinity : difference);
    }, 0);
  });
  return Math.max(...differences);
}
