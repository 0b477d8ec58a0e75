import { z } from "zod";
import { gateLimits } from "./gate.ts";
import { batchId, jobId } from "./id.ts";
import { deadlineSeconds, displayName, dryRun, labels } from "./job.ts";
import { modelReference } from "./model.ts";
import { requestedRecipe } from "./recipe.ts";
import { batchStatus, jobKind, jobStatus } from "./status.ts";
import { targetName } from "./target.ts";

/** Jobs that one batch can own. */
export const maxBatchJobs = 2000;

/** Body of `POST /batches`, and the spec of a Batch. */
export const batchRequest = z
  .strictObject({
    name: displayName.optional(),
    suite: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe("Name under which batches of the same models are compared over time."),
    kind: jobKind.default("compress"),
    models: z.array(modelReference).min(1).max(1000),
    targets: z.array(targetName).min(1).max(64),
    recipe: requestedRecipe.optional().describe("Laid over each target's default recipe."),
    gates: gateLimits.optional(),
    dryRun,
    deadlineSeconds: deadlineSeconds.describe("Limit of each job, seconds of work."),
    parallelism: z
      .int()
      .min(1)
      .max(maxBatchJobs)
      .default(100)
      .describe("Jobs of the batch that a cluster works on at once. On one machine the service's own limit holds."),
    labels: labels.optional(),
    failFast: z.boolean().default(false).describe("Cancel the jobs that are left as soon as one fails."),
  })
  .refine((batch) => batch.models.length * batch.targets.length <= maxBatchJobs, {
    path: ["models"],
    error: `models × targets must not be more than ${maxBatchJobs} jobs`,
  })
  .refine((batch) => new Set(batch.targets).size === batch.targets.length, {
    path: ["targets"],
    error: "must not name a target twice",
  })
  .meta({ id: "BatchRequest" });
export type BatchRequest = z.infer<typeof batchRequest>;

/** Several models × targets submitted in one request; owns one job for each pair. */
export const batch = z
  .object({
    id: batchId,
    name: displayName,
    suite: z.string().nullable(),
    kind: jobKind,
    status: batchStatus,
    failFast: z.boolean(),
    labels: z.record(z.string(), z.string()),
    createdAt: z.iso.datetime(),
    finishedAt: z.iso.datetime().nullable(),
    counts: z.record(jobStatus, z.int()).describe("Number of jobs in each status."),
    gatesFailed: z.int().describe("Number of jobs with a gate that failed."),
    jobs: z
      .array(
        z.object({ id: jobId, model: z.string(), target: targetName, status: jobStatus, gatesFailed: z.boolean() }),
      )
      .max(maxBatchJobs)
      .describe("The jobs, in the order of models × targets."),
  })
  .meta({ id: "Batch" });
export type Batch = z.infer<typeof batch>;
