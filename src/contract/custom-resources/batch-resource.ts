import { z } from "zod";
import { batchFields, batchRules, maxBatchJobs } from "../batches/batch.ts";
import { conditions, type ConditionType, outcomeConditions } from "./condition.ts";
import { describeChoices } from "../text/describe-choices.ts";
import { batchId } from "../id.ts";
import { textLimits } from "../limits.ts";
import { resourceControls } from "./resource-controls.ts";
import { observedGeneration, statusLimits, statusMessage, workTimes } from "./api-group.ts";
import { withRules } from "../rule.ts";
import { batchStatus, type JobStatus } from "../jobs/status.ts";

/** Spec of a Batch: the body of `POST /batches` and controls. */
export const batchSpec = withRules(
  z.strictObject({ ...batchFields.shape, ...resourceControls }),
  batchRules,
);
export type BatchSpec = z.infer<typeof batchSpec>;

/** State of each job of a Batch, as one letter of `status.marks`. */
export const jobStateCodes = {
  notCreated: ".",
  created: "m",
  completed: "c",
  gateFailed: "g",
  failed: "f",
  cancelled: "x",
} as const;
export type JobStateCode = (typeof jobStateCodes)[keyof typeof jobStateCodes];

/** Conditions of a Batch, and what each means. */
const batchConditionTable = {
  Finished: "every job of the batch has ended",
  Suspended: "the batch's jobs are suspended",
  ...outcomeConditions,
} satisfies Partial<Record<ConditionType, string>>;

const jobCount = z.int().min(0).max(maxBatchJobs).optional();

/** Status of a Batch. The status of each job is in the CompressionJob that the Batch owns. */
export const batchResourceStatus = z.object({
  batchId: batchId.optional().describe("Id of the batch in the REST interface."),
  status: batchStatus,
  statusReason: z
    .string()
    .max(textLimits.reason)
    .optional()
    .describe("`not_submitted` while the cluster does not take the next jobs."),
  statusMessage: statusMessage.optional().describe("Why, for people."),
  observedGeneration,
  jobs: jobCount.describe("Jobs of the batch: models × targets."),
  finished: z
    .string()
    .max(16)
    .optional()
    .describe("Jobs that have ended, of all, for people: `37/100`."),
  counts: z
    .strictObject({
      Pending: jobCount.describe("Jobs that are Pending."),
      Sharding: jobCount.describe("Jobs that are Sharding."),
      Optimizing: jobCount.describe("Jobs that are Optimizing."),
      Completed: jobCount.describe("Jobs that are Completed."),
      Failed: jobCount.describe("Jobs that are Failed."),
      Cancelling: jobCount.describe("Jobs that are Cancelling."),
      Cancelled: jobCount.describe("Jobs that are Cancelled."),
    } satisfies Record<JobStatus, z.ZodType>)
    .optional()
    .describe("Number of jobs in each status; jobs that are not created yet count as Pending."),
  gatesFailed: jobCount.describe("Number of jobs with a gate that failed."),
  marks: z
    .string()
    .max(maxBatchJobs)
    .regex(/^[.mcgfx]*$/)
    .optional()
    .describe(
      "A letter for each job, in the order of models × targets: `.` not created yet, " +
        "`m` created, `c` Completed, `g` Completed with a gate that failed, `f` Failed, " +
        "`x` Cancelled or never to be created.",
    ),
  failures: z
    .array(
      z.object({
        job: z.string().max(253).describe("Name of the CompressionJob."),
        model: z.string().max(100).describe("Its model's name."),
        target: z.string().max(63).describe("Its target."),
        reason: z.string().max(textLimits.reason).describe("Stable code that says why it failed."),
        message: z.string().max(textLimits.batchFailure).describe("The same for people."),
      }),
    )
    .max(statusLimits.failures)
    .optional()
    .describe("The first jobs that failed."),
  ...workTimes,
  conditions: conditions.optional().describe(describeChoices(batchConditionTable)),
});
export type BatchResourceStatus = z.infer<typeof batchResourceStatus>;
