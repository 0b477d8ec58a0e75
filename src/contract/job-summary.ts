import { z } from "zod";
import { hasFailedGate } from "./gate.ts";
import { type Job, job } from "./job.ts";
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
      })
      .describe("As the job's telemetry has them; null where a figure was not measured."),
  })
  .meta({ id: "JobSummary" });
type JobSummary = z.infer<typeof jobSummary>;

export function summarizeJob({ model, telemetry: measured, gates, ...rest }: Job): JobSummary {
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
    },
  };
}
