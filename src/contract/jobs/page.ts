import { z } from "zod";
import { batch } from "./batch.ts";
import { jobSummary } from "./job-summary.ts";
import { job } from "./job.ts";
import { batchStatus, jobKind, jobStatus } from "./status.ts";
import { targetName } from "./target.ts";
import { batchId } from "../id.ts";
import { limits } from "../limits.ts";

/** An integer in a query string. Number() alone would also take "", "0x10" and " 5 ". */
export function integerParameter(bounds: z.ZodInt) {
  return z
    .string()
    .regex(/^-?\d{1,16}$/, { error: "must be an integer" })
    .transform(Number)
    .pipe(bounds);
}

/** Query parameters of every list. */
export const pageFields = {
  limit: integerParameter(z.int().min(1).max(limits.pageMax))
    .default(limits.pageDefault)
    .describe("Entries a page."),
  cursor: z.string().max(500).optional().describe("`nextCursor` of the page before."),
};

export const nextCursor = z
  .string()
  .nullable()
  .describe("Ask for the next page with `cursor`; null on the last page.");

export const labelFilter = z
  .array(
    z.string().regex(/^[A-Za-z0-9._/-]{1,63}(=[A-Za-z0-9._-]{0,63})?$/, {
      error: "must be KEY or KEY=VALUE, each of at most 63 letters, digits, '.', '_' and '-'",
    }),
  )
  .max(8)
  .optional()
  .describe("`key` or `key=value`; repeat the parameter to ask for several labels at once.");

/** Query parameters that say which jobs are asked for, besides their status. */
const jobFilterFields = {
  kind: jobKind.optional(),
  batch: batchId.optional().describe("Jobs of this batch."),
  target: targetName.optional(),
  model: z.string().max(2048).optional().describe("Jobs whose model has this name or source."),
  search: z
    .array(z.string().min(1).max(200))
    .max(8)
    .optional()
    .describe(
      "Jobs whose model's name contains this text, in any case; repeat the parameter for several.",
    ),
  label: labelFilter,
  createdAfter: z.iso.datetime().optional().describe("Jobs created after this time."),
  createdBefore: z.iso.datetime().optional().describe("Jobs created before this time."),
};

export const jobQuery = z.strictObject({
  ...pageFields,
  status: z
    .array(jobStatus)
    .optional()
    .describe("Jobs in one of these statuses; repeat the parameter for several."),
  ...jobFilterFields,
});
export type JobQuery = z.infer<typeof jobQuery>;

export const jobCountsQuery = z.strictObject(jobFilterFields);
export type JobCountsQuery = z.infer<typeof jobCountsQuery>;

export const batchQuery = z.strictObject({
  ...pageFields,
  status: z
    .array(batchStatus)
    .optional()
    .describe("Batches in one of these statuses; repeat the parameter for several."),
  suite: z.string().max(200).optional().describe("Batches of this suite."),
});
export type BatchQuery = z.infer<typeof batchQuery>;

export const jobPage = z.object({ jobs: z.array(job), nextCursor }).meta({ id: "JobPage" });
export type JobPage = z.infer<typeof jobPage>;

export const jobSummaryPage = z
  .object({ jobs: z.array(jobSummary), nextCursor })
  .meta({ id: "JobSummaryPage" });
export type JobSummaryPage = z.infer<typeof jobSummaryPage>;

export const jobCounts = z
  .object({
    counts: z
      .record(jobStatus, z.int())
      .describe(
        `Number of jobs in each status; ${limits.countedJobs} stands for that many or more.`,
      ),
  })
  .meta({ id: "JobCounts" });

export const batchSummary = batch.omit({ jobs: true }).meta({ id: "BatchSummary" });
export type BatchSummary = z.infer<typeof batchSummary>;
export const batchPage = z
  .object({ batches: z.array(batchSummary), nextCursor })
  .meta({ id: "BatchPage" });
export type BatchPage = z.infer<typeof batchPage>;
