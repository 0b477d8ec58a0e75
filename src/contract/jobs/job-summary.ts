import { z } from "zod";
import { latencyObstacle, sqnrObstacle } from "./comparability.ts";
import { hasFailedGate } from "./gate.ts";
import { jobId } from "../id.ts";
import { type Job, job } from "./job.ts";
import type { LatencyRatio } from "./latency.ts";
import { recipe } from "./recipe.ts";
import { commit } from "../revision.ts";
import { type Telemetry, telemetry } from "./telemetry.ts";

const figure = z.number().nullable();

/** A job as a row of a list, and as events report it. */
export const jobSummary = job
  .pick({
    id: true,
    kind: true,
    name: true,
    status: true,
    statusReason: true,
    statusMessage: true,
    batchId: true,
    target: true,
    dryRun: true,
    gates: true,
    labels: true,
    createdBy: true,
    createdAt: true,
    updatedAt: true,
    startedAt: true,
    finishedAt: true,
  })
  .extend({
    model: z.string().describe("Name of the model."),
    scheme: recipe.shape.scheme,
    granularity: recipe.shape.granularity,
    blockSize: recipe.shape.blockSize,
    progress: telemetry.shape.progress,
    gatesFailed: z.boolean().describe("Whether a gate of the level `fail` did not pass."),
    warnings: z.int().min(0).describe("Number of warnings in the job's telemetry."),
    figures: z
      .object({
        originalBytes: figure,
        resultBytes: figure,
        sizeRatio: figure,
        sqnrDb: figure,
        cosine: figure,
        latencyRatio: figure,
        latencyRatioLow: figure,
        latencyRatioHigh: figure,
        latencyMs: figure.describe("Median of the result."),
      })
      .describe("As the job's telemetry has them; null where a figure was not measured."),
    baseline: z
      .object({
        jobId: jobId.describe("The job that measured the figures."),
        sha: commit,
        branch: z.string(),
        resultBytes: figure,
        sqnrDb: figure,
        latencyMs: figure,
        latencyRatio: figure.describe(
          "Latency of the job's result relative to the baseline's own, timed in one run.",
        ),
        latencyRatioLow: figure,
        latencyRatioHigh: figure,
      })
      .nullable()
      .describe(
        "What the job is compared with, if anything; a figure is null where it was measured in " +
          "another way or on other hardware.",
      ),
  })
  .meta({ id: "JobSummary" });
export type JobSummary = z.infer<typeof jobSummary>;

export function summarizeJob(whole: Job): JobSummary {
  const { model, recipe: used, gates, ...rest } = whole;
  const { id, kind, name, status, statusReason, statusMessage, batchId, target, dryRun } = rest;
  const { labels, createdBy, telemetry: measured } = rest;
  const { createdAt, updatedAt, startedAt, finishedAt } = rest;
  const identity = { id, kind, name, batchId, target, dryRun, labels };
  const progress = { status, statusReason, statusMessage };
  const summary: JobSummary = {
    ...identity,
    ...progress,
    createdAt,
    updatedAt,
    startedAt,
    finishedAt,
    model: model.name,
    scheme: used.scheme,
    granularity: used.granularity,
    blockSize: used.blockSize,
    progress: measured.progress,
    gatesFailed: hasFailedGate(gates),
    warnings: measured.warnings.length,
    figures: listFigures(measured),
    gates,
    baseline: summarizeBaseline(whole),
  };
  if (createdBy !== undefined) summary.createdBy = createdBy;
  return summary;
}

function listFigures({ size, accuracy, latency }: Telemetry): JobSummary["figures"] {
  return {
    originalBytes: size?.originalBytes ?? null,
    resultBytes: size?.resultBytes ?? null,
    sizeRatio: size?.ratio ?? null,
    sqnrDb: accuracy?.sqnrDb ?? null,
    cosine: accuracy?.cosine ?? null,
    ...listLatencyFigures(latency),
  };
}

function summarizeBaseline({ telemetry: measured, baseline }: Job): JobSummary["baseline"] {
  if (!baseline) return null;
  const { jobId: measuredBy, sha, branch, size, accuracy, latency } = baseline;
  const isAccuracyComparable = sqnrObstacle(measured, baseline) === undefined;
  const isLatencyComparable = latencyObstacle(measured, baseline) === undefined;
  return {
    jobId: measuredBy,
    sha,
    branch,
    resultBytes: size?.resultBytes ?? null,
    sqnrDb: (isAccuracyComparable ? accuracy?.sqnrDb : undefined) ?? null,
    latencyMs: (isLatencyComparable ? latency?.result.p50Ms : undefined) ?? null,
    ...listRatioFigures(measured.latency?.baseline),
  };
}

function listLatencyFigures(latency: Telemetry["latency"]) {
  return { ...listRatioFigures(latency), latencyMs: latency?.result.p50Ms ?? null };
}

function listRatioFigures(measured: LatencyRatio | undefined) {
  const { ratio = null, ratioLow = null, ratioHigh = null } = measured ?? {};
  return { latencyRatio: ratio, latencyRatioLow: ratioLow, latencyRatioHigh: ratioHigh };
}
