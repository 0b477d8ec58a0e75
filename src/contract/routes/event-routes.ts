import { z } from "zod";
import { batchId } from "../id.ts";
import { jobSummary } from "../jobs/job-summary.ts";
import { batchSummary } from "../batches/batch.ts";
import { integerParameter, labelFilter } from "../page.ts";
import type { Route } from "./route.ts";
import { limits } from "../limits.ts";

/** A job or batch that is gone. */
export const deletion = z.object({
  id: z.string(),
  batchId: batchId.nullable().optional().describe("Of a job: the batch that it belonged to."),
  labels: z.record(z.string(), z.string()).nullable(),
  deletedAt: z.iso.datetime(),
});

const eventQuery = z.strictObject({
  after: integerParameter(z.int().min(0))
    .optional()
    .describe("Number of the last change already seen; without it only later ones are sent."),
  follow: z
    .enum(["true", "false"])
    .default("true")
    .describe("Whether to continue, or to stop after the present changes."),
  batch: batchId.optional().describe("Changes of this batch and its jobs."),
  label: labelFilter,
});
export type EventQuery = z.infer<typeof eventQuery>;

export const eventRoutes = {
  streamEvents: {
    method: "GET",
    path: "/events",
    summary:
      "Changes of jobs (`event: job`, a `JobSummary`) and batches (`event: batch`, a " +
      "`BatchSummary`), streamed as they happen; of changes that follow closely the last is sent. " +
      `Deletions (\`event: job.deleted\` and \`event: batch.deleted\`) are kept for ` +
      `${limits.deletionDays} days: who was away for longer lists again`,
    action: "readWork",
    query: eventQuery,
    headers: z.object({
      "last-event-id": z
        .string()
        .regex(/^\d{1,15}$/, { error: "must be the id of an event" })
        .optional()
        .describe("As `after`, sent by event-stream clients that reconnect."),
    }),
    replies: {
      200: {
        stream: ["text/event-stream"],
        events: {
          job: jobSummary,
          batch: batchSummary,
          "job.deleted": deletion,
          "batch.deleted": deletion,
        },
        headers: ["x-accel-buffering"],
      },
    },
    errors: [],
  },
} as const satisfies Record<string, Route>;
