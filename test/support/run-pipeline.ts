import path from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import type { PipelineManifest } from "../../src/contract/jobs/pipeline.ts";
import { generateSample } from "../../src/engine/samples/generate-sample.ts";
import { sizeChoices } from "../../src/engine/samples/input-sizes.ts";
import {
  isElementType,
  rawTensorElements,
  type Sample,
  type TensorData,
} from "../../src/engine/runtime/tensor-data.ts";

// ONNX Runtime's binding takes a Float16Array for empty. Its first tensor decides what half precision is held in.
const { Float16Array } = globalThis;
Reflect.deleteProperty(globalThis, "Float16Array");
new Tensor("float32", [0], [1]).dispose();
Object.assign(globalThis, { Float16Array });

interface RunOptions {
  sample: Sample;
  optimize: boolean;
}

/** A sample for a model that runs on the first or the second choice of sizes. */
export async function findRunnableSample(modelPath: string): Promise<Sample> {
  const session = await InferenceSession.create(modelPath, {
    intraOpNumThreads: 1,
    logSeverityLevel: 4,
  });
  const inputs = session.inputMetadata.flatMap((input) =>
    input.isTensor ? [{ ...input, isTensor: true as const, shape: [...input.shape] }] : [],
  );
  try {
    for (const choice of sizeChoices) {
      const sample = generateSample(inputs, choice, 0);
      const isRun = await session.run(createFeeds(sample)).then(
        () => true,
        () => false,
      );
      if (isRun) return sample;
    }
  } finally {
    await session.release();
  }
  throw new Error(`${modelPath} runs on no generated sample`);
}

/** Runs a model in this process, on one thread. */
export async function runModel(
  modelPath: string,
  { sample, optimize }: RunOptions,
): Promise<TensorData[]> {
  const session = await InferenceSession.create(modelPath, {
    graphOptimizationLevel: optimize ? "all" : "disabled",
    intraOpNumThreads: 1,
    logSeverityLevel: 3,
  });
  const results = await session.run(createFeeds(sample));
  await session.release();
  return session.outputNames.map((name) => {
    const { type = "", dims, data } = results[name] ?? {};
    if (!dims || !isElementType(type) || !ArrayBuffer.isView(data))
      throw new Error(`${modelPath} gave no "${name}"`);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return { name, type, shape: [...dims], bytes };
  });
}

/** Runs the stages of a pipeline one after the other as its manifest says; gives the model's outputs in its order. */
export async function runPipeline(
  directory: string,
  { stages, outputs }: PipelineManifest,
  { sample, optimize }: RunOptions,
): Promise<TensorData[]> {
  const made = [new Map(sample.map((tensor) => [tensor.name, tensor]))];
  const find = (name: string, from: number) => {
    const tensor = made[from]?.get(name);
    if (!tensor) throw new Error(`Stage ${from} gave no "${name}"`);
    return tensor;
  };
  for (const { model, inputs } of stages) {
    const fed = inputs.map(({ name, from }) => find(name, from));
    const tensors = await runModel(path.join(directory, model), { sample: fed, optimize });
    made.push(new Map(tensors.map((tensor) => [tensor.name, tensor])));
  }
  return outputs.map(({ name, from }) => find(name, from));
}

/** The runtime's kernels round alike only on memory that is aligned like its own; resizable buffers begin at a page. */
function createFeeds(sample: Sample): Record<string, Tensor> {
  const entries = sample.map(({ name, type, shape, bytes }) => {
    const aligned = new Uint8Array(
      new ArrayBuffer(bytes.length, { maxByteLength: bytes.length }),
      0,
      bytes.length,
    );
    aligned.set(bytes);
    return [name, new Tensor(type, rawTensorElements({ type, bytes: aligned }), shape)] as const;
  });
  return Object.fromEntries(entries);
}
