import { z } from "zod";
import { jobSummary } from "./job-summary.ts";
import { job } from "./job.ts";
import { jobKind, jobStatus } from "./status.ts";
import { targetName } from "./target.ts";
import { batchId } from "../id.ts";
import { limits } from "../limits.ts";
import { labelFilter, nextCursor, pageFields } from "../page.ts";

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
