import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipelineManifest, type PipelineManifest } from "../../contract/pipeline.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { writeModel, type WrittenFile } from "../onnx/write-model.ts";
import { cutStages, type StageModel } from "./cut-stages.ts";
import type { PipelinePlan } from "./plan-pipeline.ts";

export const pipelineManifestName = "pipeline.json";

export interface WrittenPipeline {
  readonly manifest: PipelineManifest;
  readonly files: readonly WrittenFile[];
}

/**
 * Writes each stage as a model of its own, with copies of the weights, constants and functions that it uses, and `pipeline.json`, which
 * says how they are linked. Where anything fails, nothing stays.
 *
 * Run one after the other on the CPU provider with graph optimizations off, the stages give the model's outputs bit for bit, provided that
 * inputs are aligned as the runtime aligns its own memory (64 bytes). Half precision is the exception: that provider computes it in
 * single precision and rounds only what crosses a cut.
 *
 * @throws ServiceError storage_full, model_unsupported
 */
export async function writePipeline(
  model: OnnxModel,
  plan: PipelinePlan,
  { directory, signal }: { directory: string; signal: AbortSignal },
): Promise<WrittenPipeline> {
  const stages = cutStages(model.proto, plan);
  const written: WrittenFile[][] = [];
  try {
    for (const [index, { proto }] of stages.entries()) {
      written.push(
        await writeModel({ ...model, proto }, { directory, name: stageName(index), signal }),
      );
    }
    const manifest = buildPipelineManifest(plan, stages, written);
    const text = `${JSON.stringify(manifest, undefined, 2)}\n`;
    const partial = path.join(directory, `${pipelineManifestName}.${randomUUID()}.partial`);
    await writeFile(partial, text);
    await rename(partial, path.join(directory, pipelineManifestName));
    const entry: WrittenFile = {
      name: pipelineManifestName,
      kind: "manifest",
      bytes: Buffer.byteLength(text),
    };
    return { manifest, files: [...written.flat(), entry] };
  } catch (error) {
    await Promise.all(
      written.flat().map(({ name }) => rm(path.join(directory, name), { force: true })),
    );
    throw error;
  }
}

function stageName(index: number): string {
  return `stage-${String(index + 1).padStart(2, "0")}`;
}

function buildPipelineManifest(
  plan: PipelinePlan,
  stages: readonly StageModel[],
  written: readonly (readonly WrittenFile[])[],
): PipelineManifest {
  const makers = new Map(
    stages.flatMap(({ outputs }, index) => outputs.map((name) => [name, index + 1])),
  );
  return pipelineManifest.parse({
    version: 1,
    balance: plan.balance,
    stages: plan.stages.map(({ parameterBytes, load }, index) => ({
      model: `${stageName(index)}.onnx`,
      files: written[index]?.map(({ name, bytes }) => ({ name, bytes })),
      parameterBytes,
      load,
      inputs: stages[index]?.inputs.map((name) => ({ name, from: makers.get(name) ?? 0 })),
      outputs: stages[index]?.outputs,
    })),
    cuts: plan.cuts.map(({ bytes, values }) => ({
      bytes,
      tensors: values.map((name) => ({
        name,
        type: plan.values.get(name)?.type,
        shape: plan.values.get(name)?.shape,
      })),
    })),
    outputs: plan.graph.graph.output.map(({ name }) => ({ name, from: makers.get(name) })),
  });
}
