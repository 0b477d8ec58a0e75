import { z } from "zod";
import { batchId } from "../id.ts";
import { job } from "../jobs/job.ts";
import { integerParameter, labelFilter } from "../jobs/page.ts";
import type { Route } from "./route.ts";
import { limits } from "../limits.ts";
import { telemetry } from "../jobs/telemetry.ts";

/** A job in an event: enough to know whether to ask for the whole of it. */
export const jobChange = job
  .pick({
    id: true,
    kind: true,
    name: true,
    status: true,
    statusReason: true,
    statusMessage: true,
    batchId: true,
    target: true,
    labels: true,
    createdAt: true,
    updatedAt: true,
    finishedAt: true,
  })
  .extend({ progress: telemetry.shape.progress.optional() });

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
      "Changes of jobs (`event: job`, the job in short) and batches (`event: batch`, as lists " +
      "have it), streamed as they happen; of changes that follow closely the last is sent. " +
      `Deletions (\`event: job.deleted\` and \`event: batch.deleted\`) are kept for ` +
      `${limits.deletionDays} days: who was away for longer lists anew`,
    action: "readWork",
    query: eventQuery,
    headers: z.object({
      "last-event-id": z
        .string()
        .regex(/^\d{1,15}$/, { error: "must be the id of an event" })
        .optional()
        .describe("As `after`, sent by event-stream clients that reconnect."),
    }),
    replies: { 200: { stream: ["text/event-stream"], headers: ["x-accel-buffering"] } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
