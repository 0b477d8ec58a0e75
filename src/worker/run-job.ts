import { mkdir } from "node:fs/promises";
import path from "node:path";
import { ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { Assignment } from "../contract/worker.ts";
import { type CompressionReport, compressModel, predictCompression } from "../engine/compress-model.ts";
import { planCompression } from "../engine/plan-compression.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import { cutPipeline } from "./cut-pipeline.ts";
import { evaluateResult } from "./evaluate-result.ts";
import { fetchInputs, type JobInputs } from "./fetch-inputs.ts";
import { publishFiles } from "./publish-files.ts";
import type { Reporter } from "./reporter.ts";
import { createStageClock, type RunStage } from "./stage-clock.ts";
import { summarize } from "./summarize.ts";

export interface JobSurroundings {
  readonly blobs: BlobStore;
  /** Scratch folder of this attempt alone. */
  readonly directory: string;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
}

/** Does the work of a job. It is done when this resolves: artifacts are stored and told. */
export async function runJob(assignment: Assignment, surroundings: JobSurroundings): Promise<void> {
  const { directory, reporter, signal } = surroundings;
  const runStage = createStageClock(reporter, signal);
  const { id, attempt, kind, recipe, target, model, dryRun } = assignment;
  reporter.log(
    `Job ${id}, attempt ${attempt}: ${kind}${dryRun ? " (dry run)" : ""} "${model.name}" for target "${target.name}"`,
  );
  reporter.log(`Recipe: ${recipe.scheme}, granularity ${recipe.granularity}, evaluation ${recipe.evaluation.level}`);
  reporter.status(kind === "compress" ? "Sharding" : "Optimizing");

  const inputs = await runStage("fetch", async (stage) => fetchInputs(assignment, surroundings, stage));
  reporter.model(inputs.model.bytes, inputs.model.sha256);
  if (kind === "compress") {
    await shard(assignment, inputs, { runStage, signal });
    reporter.status("Optimizing");
  }
  const outputDirectory = path.join(directory, "result");
  await mkdir(outputDirectory);
  const report = await optimize(assignment, inputs, { outputDirectory, runStage, signal });
  reporter.model(report.originalBytes, inputs.model.sha256);
  reporter.telemetry(sizesOf(report, dryRun));
  const stageFiles = await cutPipeline(assignment, report, { ...surroundings, outputDirectory });
  const evaluation = dryRun
    ? { warnings: [] }
    : await runStage("evaluate", async (stage) => {
        return evaluateResult({ assignment, inputs, report, outputDirectory, signal, stage });
      });
  reporter.telemetry(evaluation);
  const artifacts = await runStage("publish", async (stage) => {
    const { weights } = report;
    const { warnings } = evaluation;
    return publishFiles(
      { files: [...report.files, ...stageFiles], report: { job: id, recipe, weights, warnings } },
      { ...surroundings, outputDirectory, stage },
    );
  });
  for (const artifact of artifacts) reporter.artifact(artifact);
  for (const line of summarize(report, evaluation)) reporter.log(line);
}

interface StageSurroundings {
  readonly runStage: RunStage;
  readonly signal: AbortSignal;
}

/** Reads the model's graph and divides its weights, so that what is wrong with the model shows before any work. */
async function shard(
  { kind, recipe, target, limits, model }: Assignment,
  inputs: JobInputs,
  { runStage, signal }: StageSurroundings,
): Promise<void> {
  await runStage("shard", async ({ log }) => {
    const plan = await sayingWhereDataIs(model.source, async () => {
      return planCompression(inputs.model.path, { kind, recipe, target, maxModelBytes: limits.maxModelBytes });
    });
    signal.throwIfAborted();
    const { count, bytes } = plan.shards;
    const largest = formatBytes(Math.max(...bytes));
    log(`${plan.weights.length} weights in ${count} ${count === 1 ? "shard" : "shards"}, the largest of ${largest}`);
    log(`The result will have ${formatBytes(plan.resultBytes)} of ${formatBytes(plan.originalBytes)}`);
  });
}

/** Compresses the model; in a dry run, tells what that would give. */
async function optimize(
  { kind, recipe, target, limits, model, dryRun }: Assignment,
  inputs: JobInputs,
  { outputDirectory, runStage, signal }: StageSurroundings & { readonly outputDirectory: string },
): Promise<CompressionReport> {
  return runStage("optimize", async ({ onProgress, log }) => {
    const { maxModelBytes } = limits;
    const options = { kind, recipe, target, maxModelBytes, outputDirectory, signal, onProgress, log };
    return sayingWhereDataIs(model.source, async () => {
      return dryRun ? predictCompression(inputs.model.path, options) : compressModel(inputs.model.path, options);
    });
  });
}

/** External data comes along with `file://` models alone. */
async function sayingWhereDataIs<T>(source: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isMissing = error instanceof ServiceError && error.code === "external_data_missing";
    if (!isMissing || source.startsWith("file:")) throw error;
    const how = "only models from file:// sources can have external data: put the weights into the ONNX file";
    throw new ServiceError("external_data_missing", `${error.message}; ${how}`, { cause: error });
  }
}

function sizesOf({ originalBytes, resultBytes, weights }: CompressionReport, predicted: boolean) {
  const quantized = weights.filter(({ form }) => form !== null);
  return {
    size: { originalBytes, resultBytes, ratio: resultBytes / originalBytes, predicted },
    weights: {
      total: weights.length,
      quantized: quantized.length,
      quantizedBytes: quantized.reduce((sum, weight) => sum + weight.originalBytes, 0),
    },
  };
}
