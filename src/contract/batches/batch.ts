import { z } from "zod";
import { createdBy } from "../jobs/creation.ts";
import { gateLimits } from "../jobs/gate.ts";
import { githubReport } from "./github-report.ts";
import { deadlineSeconds, displayName, dryRun, labels } from "../jobs/job.ts";
import { requestedRecipe } from "../jobs/recipe.ts";
import {
  batchStatus,
  type BatchStatus,
  isTerminal,
  jobKind,
  jobStatus,
  type JobStatus,
} from "../jobs/status.ts";
import { targetName } from "../jobs/target.ts";
import { batchId, jobId } from "../id.ts";
import { textLimits } from "../limits.ts";
import { modelReference } from "../models/model.ts";
import { nextCursor, pageFields } from "../page.ts";
import { revision } from "../revision.ts";
import { type Rule, withRules } from "../rule.ts";
import { boundedText } from "../text/bounded-text.ts";
import { truncate } from "../text/truncate.ts";

/** Most jobs of one batch. */
export const maxBatchJobs = 2000;

/** Fields of `POST /batches`, and of the spec of a Batch. */
export const batchFields = z.strictObject({
  name: displayName.optional(),
  suite: boundedText({ min: 1, max: textLimits.name })
    .optional()
    .describe("Name under which batches of the same models are compared over time."),
  revision: revision
    .optional()
    .describe(
      "Commit that the models belong to, to compare their jobs with baselines of the suite.",
    ),
  kind: jobKind.default("compress"),
  models: z.array(modelReference).min(1).max(1000).describe("Each is compressed for each target."),
  targets: z.array(targetName).min(1).max(64).describe("Names of targets, each once."),
  recipe: requestedRecipe.optional().describe("Overrides fields of each target's default recipe."),
  gates: gateLimits.optional().describe("Limits on what is measured for each job."),
  dryRun,
  deadlineSeconds: deadlineSeconds.describe("Limit of each job, seconds of work."),
  parallelism: z
    .int()
    .min(1)
    .max(maxBatchJobs)
    .default(100)
    .describe(
      "Jobs of the batch that a cluster works on at once. A Batch's can be changed: jobs that " +
        "have begun continue. On one machine the service's own limit applies.",
    ),
  labels: labels.optional(),
  failFast: z.boolean().default(false).describe("Cancel the remaining jobs as soon as one fails."),
});

export const batchRules: readonly Rule<z.infer<typeof batchFields>>[] = [
  {
    field: "models",
    message: `models × targets must not be more than ${maxBatchJobs} jobs`,
    isMet: ({ models, targets }) => models.length * targets.length <= maxBatchJobs,
    cel: `size(self.models) * size(self.targets) <= ${maxBatchJobs}`,
  },
  {
    field: "targets",
    message: "must not name a target twice",
    isMet: ({ targets }) => new Set(targets).size === targets.length,
    cel: "self.targets.all(target, self.targets.exists_one(other, other == target))",
  },
  {
    field: "revision",
    message: "must have a branch, and the batch a suite, to record baselines",
    isMet: (request) =>
      !request.revision?.recordBaseline ||
      (request.revision.branch !== undefined && request.suite !== undefined),
    cel:
      "!has(self.revision) || !self.revision.recordBaseline || " +
      "(has(self.revision.branch) && has(self.suite))",
  },
];

/** Body of `POST /batches`. */
export const batchRequest = withRules(
  z.strictObject({
    ...batchFields.shape,
    report: z
      .strictObject({
        github: githubReport.describe(
          "Check runs on a commit, which a service with a GitHub App keeps up to date.",
        ),
      })
      .optional()
      .describe("Where the service reports the batch's progress and results."),
  }),
  batchRules,
).meta({ id: "BatchRequest" });
export type BatchRequest = z.infer<typeof batchRequest>;

/** Several models × targets submitted in one request, with one job for each pair. */
export const batch = z
  .object({
    id: batchId,
    name: displayName,
    suite: z.string().nullable(),
    revision: revision.nullable().default(null),
    kind: jobKind,
    status: batchStatus,
    failFast: z.boolean(),
    labels: z.record(z.string(), z.string()),
    createdAt: z.iso.datetime(),
    createdBy,
    finishedAt: z.iso.datetime().nullable(),
    counts: z.record(jobStatus, z.int()).describe("Number of jobs in each status."),
    gatesFailed: z
      .int()
      .describe("Number of jobs with a gate of the level `fail` that did not pass."),
    jobs: z
      .array(
        z.object({
          id: jobId,
          model: z.string(),
          target: targetName,
          status: jobStatus,
          gatesFailed: z.boolean(),
        }),
      )
      .max(maxBatchJobs)
      .describe("The jobs, in the order of models × targets."),
  })
  .meta({ id: "Batch" });
export type Batch = z.infer<typeof batch>;

/** The name of a batch: the request's, else its suite, else its models and targets in words. */
export function batchName({
  name,
  suite,
  models,
  targets,
}: Pick<BatchRequest, "name" | "suite" | "models" | "targets">): string {
  const noun = models.length === 1 ? "model" : "models";
  const contents = `${models.length} ${noun} for ${targets.join(", ")}`;
  return name ?? truncate(suite ?? contents, textLimits.name);
}

export type StatusCounts = Readonly<Record<JobStatus, number>>;

/** A batch's status follows only from its jobs'. */
export function deriveBatchStatus(counts: StatusCounts): BatchStatus {
  const present = jobStatus.options.filter((status) => counts[status] > 0);
  const unfinished = present.filter((status) => !isTerminal(status));
  if (unfinished.length > 0) {
    if (unfinished.every((status) => status === "Cancelling")) return "Cancelling";
    return present.every((status) => status === "Pending") ? "Pending" : "Running";
  }
  if (present.includes("Failed")) return "Failed";
  return present.includes("Cancelled") ? "Cancelled" : "Completed";
}

export const zeroCounts: StatusCounts = {
  Pending: 0,
  Sharding: 0,
  Optimizing: 0,
  Completed: 0,
  Failed: 0,
  Cancelling: 0,
  Cancelled: 0,
};

/**
 * Splits pairs of models and targets into batches. As a batch has a job for each of its models and
 * each of its targets, models with the same targets share one. The pairs of a batch keep their
 * order.
 */
export function groupByTargets<Pair extends { readonly model: object; readonly target: string }>(
  pairs: readonly Pair[],
): { models: Pair["model"][]; targets: string[]; pairs: Pair[] }[] {
  const byModel = [...Map.groupBy(pairs, ({ model }) => model).values()];
  const groups = Map.groupBy(byModel, (ofModel) => ofModel.map(({ target }) => target).join(" "));
  return [...groups.values()].map((group) => {
    const all = group.flat();
    return {
      models: [...new Set(all.map(({ model }) => model))],
      targets: [...new Set(all.map(({ target }) => target))],
      pairs: all,
    };
  });
}

export const batchQuery = z.strictObject({
  ...pageFields,
  status: z
    .array(batchStatus)
    .optional()
    .describe("Batches in one of these statuses; repeat the parameter for several."),
  suite: z.string().max(200).optional().describe("Batches of this suite."),
});
export type BatchQuery = z.infer<typeof batchQuery>;

export const batchSummary = batch.omit({ jobs: true }).meta({ id: "BatchSummary" });
export type BatchSummary = z.infer<typeof batchSummary>;
export const batchPage = z
  .object({ batches: z.array(batchSummary), nextCursor })
  .meta({ id: "BatchPage" });
export type BatchPage = z.infer<typeof batchPage>;
