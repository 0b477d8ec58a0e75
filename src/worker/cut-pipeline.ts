import { availableParallelism } from "node:os";
import path from "node:path";
import type { Artifact } from "../contract/jobs/artifact.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import type { Assignment } from "../contract/jobs/worker.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import { openModel } from "../engine/onnx/open-model.ts";
import { planPipeline } from "../engine/pipeline/plan-pipeline.ts";
import { writePipeline } from "../engine/pipeline/write-pipeline.ts";
import type { Reporter } from "./reporter.ts";

type StageFile = Pick<Artifact, "name" | "kind" | "bytes">;

interface CutPipelineOptions {
  /** For temporary files. */
  readonly directory: string;
  /** Folder of the result, where the stages are written too. */
  readonly outputDirectory: string;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/** Cuts the result into stages where the recipe asks for them; returns their files. */
export async function cutPipeline(
  { kind, recipe }: Assignment,
  { files }: CompressionReport,
  { directory, outputDirectory, reporter, signal }: CutPipelineOptions,
): Promise<StageFile[]> {
  const { stages, maxStageBytes, balance } = recipe.sharding;
  const [onnxFile] = files;
  const isCut = stages !== undefined || maxStageBytes !== undefined;
  if (kind !== "compress" || onnxFile === undefined || !isCut) return [];
  const maxBytes = files.reduce((total, file) => total + file.bytes, 0);
  const model = await openModel(path.join(outputDirectory, onnxFile.name), { maxBytes });
  const plan = await planPipeline(model, {
    stages,
    maxStageBytes,
    balance,
    scratchDirectory: directory,
    threads: availableParallelism(),
    signal,
  });
  const pipeline = await writePipeline(model, plan, { directory: outputDirectory, signal });
  for (const line of stageLogLines(plan)) reporter.log(`[shard] ${line}`);
  return pipeline.files.map(({ name, kind: fileKind, bytes }) => {
    return { name, kind: fileKind === "manifest" ? "manifest" : "stage", bytes };
  });
}

function stageLogLines({ stages, cuts }: Awaited<ReturnType<typeof planPipeline>>): string[] {
  return stages.map(({ steps, parameterBytes }, index) => {
    const content = `${steps.length} nodes, weights of ${formatBytes(parameterBytes)}`;
    const stage = `Stage ${index + 1} of ${stages.length}: ${content}`;
    const cut = cuts[index];
    if (cut === undefined) return stage;
    return `${stage}; ${formatBytes(cut.bytes)} in ${cut.values.length} tensors go on to the next`;
  });
}
