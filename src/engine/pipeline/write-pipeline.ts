import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { at } from "../onnx/at.ts";
import { pipelineManifest, type PipelineManifest } from "../../contract/jobs/pipeline.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { writeModel, type WrittenFile } from "../onnx/write-model.ts";
import { cutStages, type StageModel } from "./cut-stages.ts";
import type { PipelinePlan } from "./plan-pipeline.ts";

const pipelineManifestName = "pipeline.json";

interface WrittenPipeline {
  readonly manifest: PipelineManifest;
  readonly files: readonly WrittenFile[];
}

/**
 * Writes each stage as a model of its own, with copies of the weights, constants and functions that
 * it uses, and `pipeline.json`, which says how they are linked. Deletes all of it on any error.
 *
 * Run one after the other on the CPU provider with graph optimizations off, the stages compute the
 * model's outputs bit for bit, provided that inputs are aligned as the runtime aligns its own
 * memory (64 bytes). Half precision is the exception: that provider computes it in single precision
 * and rounds only what crosses a cut.
 * @throws ServiceError storage_full, model_unsupported
 */
export async function writePipeline(
  model: OnnxModel,
  plan: PipelinePlan,
  directory: string,
  signal: AbortSignal,
): Promise<WrittenPipeline> {
  const stages = cutStages(model.proto, plan);
  const written: WrittenFile[][] = [];
  try {
    for (const [index, { proto }] of stages.entries()) {
      const options = { directory, name: stageName(index), signal };
      written.push(await writeModel({ ...model, proto }, options));
    }
    const manifest = buildPipelineManifest(plan, stages, written);
    const entry = await writeManifest(manifest, directory);
    return { manifest, files: [...written.flat(), entry] };
  } catch (error) {
    const names = written.flat().map(({ name }) => name);
    await Promise.all(names.map((name) => rm(path.join(directory, name), { force: true })));
    throw error;
  }
}

async function writeManifest(manifest: PipelineManifest, directory: string): Promise<WrittenFile> {
  const text = `${JSON.stringify(manifest, undefined, 2)}\n`;
  const partial = path.join(directory, `${pipelineManifestName}.${randomUUID()}.partial`);
  await writeFile(partial, text);
  await rename(partial, path.join(directory, pipelineManifestName));
  return { name: pipelineManifestName, kind: "manifest", bytes: Buffer.byteLength(text) };
}

function stageName(index: number): string {
  return `stage-${String(index + 1).padStart(2, "0")}`;
}

function buildPipelineManifest(
  plan: PipelinePlan,
  stages: readonly StageModel[],
  written: readonly (readonly WrittenFile[])[],
): PipelineManifest {
  const producers = new Map(
    stages.flatMap(({ outputs }, index) => outputs.map((name) => [name, index + 1])),
  );
  return pipelineManifest.parse({
    version: 1,
    balance: plan.balance,
    stages: plan.stages.map(({ parameterBytes, load }, index) => ({
      model: `${stageName(index)}.onnx`,
      files: at(written, index).map(({ name, bytes }) => ({ name, bytes })),
      parameterBytes,
      load,
      inputs: at(stages, index).inputs.map((name) => ({ name, from: producers.get(name) ?? 0 })),
      outputs: at(stages, index).outputs,
    })),
    cuts: describeCuts(plan),
    outputs: plan.graph.graph.output.map(({ name }) => ({ name, from: producers.get(name) })),
  });
}

function describeCuts({ cuts, values }: PipelinePlan) {
  return cuts.map((cut) => ({
    bytes: cut.bytes,
    tensors: cut.values.map((name) => {
      const value = values.get(name);
      return { name, type: value?.type, shape: value?.shape };
    }),
  }));
}
