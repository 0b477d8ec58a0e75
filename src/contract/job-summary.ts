import { z } from "zod";
import { latencyObstacle, sqnrObstacle } from "./comparability.ts";
import { gateResult, hasFailedGate } from "./gate.ts";
import { type Job, job } from "./job.ts";
import { commit } from "./revision.ts";
import { telemetry } from "./telemetry.ts";

const figure = z.number().nullable();

/** A job as a row of a list. */
export const jobSummary = job
  .pick({
    id: true,
    kind: true,
    name: true,
    status: true,
    statusReason: true,
    batchId: true,
    target: true,
    dryRun: true,
    createdAt: true,
    finishedAt: true,
  })
  .extend({
    model: z.string().describe("Name of the model."),
    progress: telemetry.shape.progress,
    gatesFailed: z.boolean().describe("Whether a gate of the level `fail` did not pass."),
    figures: z
      .object({
        originalBytes: figure,
        resultBytes: figure,
        sizeRatio: figure,
        sqnrDb: figure,
        cosine: figure,
        latencyRatio: figure,
        latencyMs: figure.describe("Median of the result."),
      })
      .describe("As the job's telemetry has them; null where a figure was not measured."),
    gates: z.array(
      gateResult.pick({ gate: true, limit: true, actual: true, level: true, passed: true }),
    ),
    baseline: z
      .object({
        sha: commit,
        branch: z.string(),
        resultBytes: figure,
        sqnrDb: figure,
        latencyMs: figure,
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
  const { model, telemetry: measured, gates, ...rest } = whole;
  const { id, kind, name, status, statusReason, batchId, target, dryRun } = rest;
  const { progress, size, accuracy, latency } = measured;
  return {
    id,
    kind,
    name,
    status,
    statusReason,
    batchId,
    target,
    dryRun,
    createdAt: rest.createdAt,
    finishedAt: rest.finishedAt,
    model: model.name,
    progress,
    gatesFailed: hasFailedGate(gates),
    figures: {
      originalBytes: size?.originalBytes ?? null,
      resultBytes: size?.resultBytes ?? null,
      sizeRatio: size?.ratio ?? null,
      sqnrDb: accuracy?.sqnrDb ?? null,
      cosine: accuracy?.cosine ?? null,
      latencyRatio: latency?.ratio ?? null,
      latencyMs: latency?.result.p50Ms ?? null,
    },
    gates: gates.map(({ gate, limit, actual, level, passed }) => {
      return { gate, limit, actual, level, passed };
    }),
    baseline: summarizeBaseline(whole),
  };
}

function summarizeBaseline({ telemetry: measured, baseline }: Job): JobSummary["baseline"] {
  if (!baseline) return null;
  const { sha, branch, size, accuracy, latency } = baseline;
  const isAccuracyComparable = sqnrObstacle(measured, baseline) === undefined;
  const isLatencyComparable = latencyObstacle(measured, baseline) === undefined;
  return {
    sha,
    branch,
    resultBytes: size?.resultBytes ?? null,
    sqnrDb: (isAccuracyComparable ? accuracy?.sqnrDb : undefined) ?? null,
    latencyMs: (isLatencyComparable ? latency?.result.p50Ms : undefined) ?? null,
  };
}
