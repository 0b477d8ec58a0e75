import { z } from "zod";
import { jobId } from "../id.ts";
import { job } from "./job.ts";
import { recipe } from "./recipe.ts";
import { commit } from "../revision.ts";
import { telemetry } from "./telemetry.ts";
import { shownLine } from "../text/shown-line.ts";

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
    accuracyBasis: shownLine(64)
      .optional()
      .describe(
        "What `sqnrDb` and `cosine` were measured on: `weights`, `generated`, `builtin`, or " +
          "`caller-` with the first 12 digits of the samples' SHA-256. Only figures of one basis " +
          "can be compared; absent where there are none.",
      ),
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
