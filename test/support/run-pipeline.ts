import path from "node:path";
import type { PipelineManifest } from "../../src/contract/pipeline.ts";
import { ModelSession } from "../../src/engine/evaluate/model-session.ts";
import type { Sample, TensorBytes } from "../../src/engine/evaluate/tensor-bytes.ts";

const signal = new AbortController().signal;

export async function openSession(modelPath: string, optimize: boolean): Promise<ModelSession> {
  return ModelSession.open(modelPath, { executionProvider: "cpu", threads: 1, optimize, signal });
}

/** Runs the stages of a pipeline one after the other as its manifest says; gives the model's outputs in its order. */
export async function runPipeline(
  directory: string,
  manifest: PipelineManifest,
  { sample, optimize }: { sample: Sample; optimize: boolean },
): Promise<TensorBytes[]> {
  const made = [new Map(sample.map((tensor) => [tensor.name, tensor]))];
  const find = (name: string, from: number) => {
    const tensor = made[from]?.get(name);
    if (!tensor) throw new Error(`Stage ${from} gave no "${name}"`);
    return tensor;
  };
  for (const { model, inputs, outputs } of manifest.stages) {
    await using session = await openSession(path.join(directory, model), optimize);
    const tensors = await session.run(
      inputs.map(({ name, from }) => find(name, from)),
      outputs,
    );
    made.push(new Map(tensors.map((tensor) => [tensor.name, tensor])));
  }
  return manifest.outputs.map(({ name, from }) => find(name, from));
}
