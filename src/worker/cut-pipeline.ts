import { availableParallelism } from "node:os";
import path from "node:path";
import type { Artifact } from "../contract/artifact.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { Assignment } from "../contract/worker.ts";
import type { CompressionReport } from "../engine/compress-model.ts";
import { openModel } from "../engine/onnx/open-model.ts";
import { planPipeline } from "../engine/pipeline/plan-pipeline.ts";
import { writePipeline } from "../engine/pipeline/write-pipeline.ts";
import type { Reporter } from "./reporter.ts";

interface CutPipelineOptions {
  /** For files that live as long as the call. */
  readonly directory: string;
  /** Where the result is and the stages go. */
  readonly outputDirectory: string;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/** Cuts the result into stages where the recipe asks for them; gives their files. */
export async function cutPipeline(
  { kind, recipe }: Assignment,
  { files }: CompressionReport,
  { directory, outputDirectory, reporter, signal }: CutPipelineOptions,
): Promise<Pick<Artifact, "name" | "kind" | "bytes">[]> {
  const { stages, maxStageBytes, balance } = recipe.sharding;
  const [onnxFile] = files;
  if (
    kind !== "compress" ||
    onnxFile === undefined ||
    (stages === undefined && maxStageBytes === undefined)
  )
    return [];
  const maxBytes = files.reduce((total, file) => total + file.bytes, 0);
  const model = await openModel(path.join(outputDirectory, onnxFile.name), { maxBytes });
  const threads = availableParallelism();
  const scratchDirectory = directory;
  const plan = await planPipeline(model, {
    stages,
    maxStageBytes,
    balance,
    scratchDirectory,
    threads,
    signal,
  });
  const pipeline = await writePipeline(model, plan, { directory: outputDirectory, signal });
  for (const [index, stage] of plan.stages.entries()) {
    const cut = plan.cuts[index];
    const onward = cut
      ? `; ${formatBytes(cut.bytes)} in ${cut.values.length} tensors go on to the next`
      : "";
    reporter.log(
      `[shard] Stage ${index + 1} of ${plan.stages.length}: ${stage.steps.length} nodes, weights of ${formatBytes(stage.parameterBytes)}${onward}`,
    );
  }
  return pipeline.files.map(({ name, kind: fileKind, bytes }) => {
    return { name, kind: fileKind === "manifest" ? "manifest" : "stage", bytes };
  });
}
