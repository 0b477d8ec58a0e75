import { availableParallelism } from "node:os";
import path from "node:path";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import type { Reporter, Stage } from "./reporter.ts";
import { ServiceError } from "../contract/errors.ts";
import type { Artifact } from "../contract/jobs/artifact.ts";
import type { Assignment } from "../contract/worker-protocol/messages.ts";
import { findUploadHash } from "../contract/models/model-source.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { createCandidateRunner, runsCandidates } from "../engine/candidate-runner.ts";
import type { CandidateRunner } from "../engine/candidate.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import { openModel } from "../engine/onnx/open-model.ts";
import { planPipeline } from "../engine/pipeline/plan-pipeline.ts";
import { writePipeline } from "../engine/pipeline/write-pipeline.ts";
import {
  type CompressionPlan,
  planCompression,
  type PlanOptions,
} from "../engine/plan-compression.ts";

/**
 * Reads the model's graph and shards its weights, so that an invalid model fails before any work.
 */
export async function planModel(
  { assignment, runStage, signal }: JobContext,
  inputs: JobInputs,
): Promise<CompressionPlan> {
  return runStage("shard", async ({ log }) => {
    const plan = await explainMissingData(assignment.model.source, async () => {
      return planCompression(inputs.model.path, planOptions(assignment));
    });
    signal.throwIfAborted();
    const { count, bytes } = plan.shards;
    const shards = formatCount(count, "shard");
    const largest = formatBytes(Math.max(...bytes));
    const { length: weights } = plan.weights;
    const weighed = formatCount(weights, "weight");
    log(`${weighed} in ${shards}, the largest of ${largest}`);
    const [resultSize, originalSize] = [plan.resultBytes, plan.originalBytes].map(formatBytes);
    log(`The result will have ${resultSize} of ${originalSize}`);
    return plan;
  });
}

export function planOptions({ kind, recipe, target, limits }: Assignment): PlanOptions {
  return { kind, recipe, target, maxModelBytes: limits.maxModelBytes };
}

/** Adds to an error for missing external data how an uploaded model can have some. */
export async function explainMissingData<T>(source: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const isMissing = cause instanceof ServiceError && cause.code === "external_data_missing";
    if (!isMissing || findUploadHash(source) === undefined) throw cause;
    const advice = "upload it too, and name both files in a manifest (POST /manifests)";
    const message = `${cause.message}; ${advice}`;
    throw new ServiceError("external_data_missing", message, { cause });
  }
}

/** Runs candidates of a job where its recipe has the result evaluated by its outputs. */
export function createJobCandidates(
  { assignment, signal }: JobContext,
  inputs: JobInputs,
  stage: Stage,
): CandidateRunner | undefined {
  const { recipe, target } = assignment;
  const { evaluation } = recipe;
  // Candidates are run beside the original, which takes four bytes for each parameter to write.
  if (!runsCandidates(recipe) || isCheckpoint(inputs.model.path)) return undefined;
  return createCandidateRunner({
    originalPath: inputs.model.path,
    evaluation,
    executionProvider: target.executionProvider,
    instructionSets: target.instructionSets,
    dataPath: inputs.dataPath,
    signal,
    // The weights are quantized by then, and may be once more.
    onProgress: (_fraction, message) => stage.onProgress(1, message),
    log: stage.log,
  });
}

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
  const model = await openModel(path.join(outputDirectory, onnxFile.name), maxBytes);
  const plan = await planPipeline(model, {
    stages,
    maxStageBytes,
    balance,
    scratchDirectory: directory,
    threads: availableParallelism(),
    signal,
  });
  const pipeline = await writePipeline(model, plan, outputDirectory, signal);
  for (const line of stageLogLines(plan)) reporter.log(`[shard] ${line}`);
  return pipeline.files.map(({ name, kind: fileKind, bytes }) => {
    return { name, kind: fileKind === "manifest" ? "manifest" : "stage", bytes };
  });
}

function stageLogLines({ stages, cuts }: Awaited<ReturnType<typeof planPipeline>>): string[] {
  return stages.map(({ steps, parameterBytes }, index) => {
    const content = `${formatCount(steps.length, "node")}, weights of ${formatBytes(parameterBytes)}`;
    const stage = `Stage ${index + 1} of ${stages.length}: ${content}`;
    const cut = cuts[index];
    if (cut === undefined) return stage;
    return `${stage}; ${formatBytes(cut.bytes)} in ${cut.values.length} tensors go on to the next`;
  });
}
