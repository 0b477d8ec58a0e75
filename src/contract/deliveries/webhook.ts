import { z } from "zod";
import { boundedText } from "../text/bounded-text.ts";
import { deliveryId, webhookId } from "../id.ts";
import { jobSummary } from "../jobs/job-summary.ts";
import { limits } from "../limits.ts";
import { batchSummary } from "../batches/batch.ts";
import { batchStatus, jobStatus } from "../jobs/status.ts";

type EventType = `job.${string}` | `batch.${string}`;

/** The event of a job or batch that enters a status. */
export function eventType(kind: "job" | "batch", status: string): EventType {
  return `${kind}.${status.toLowerCase()}`;
}

const eventTypes: readonly EventType[] = [
  ...jobStatus.options.map((status) => eventType("job", status)),
  ...batchStatus.options.map((status) => eventType("batch", status)),
];

const eventFilter = z.enum(["job.*", "batch.*", ...eventTypes]);
type EventFilter = z.infer<typeof eventFilter>;

export function isWanted(type: EventType, filters: readonly EventFilter[]): boolean {
  return filters.includes(type) || filters.includes(type.startsWith("job.") ? "job.*" : "batch.*");
}

export const webhookRequest = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .max(2048)
      .describe(
        "Where events are sent: `https://…` on the public internet, unless the administrator " +
          "allows others. Redirects are not followed.",
      ),
    events: z
      .array(eventFilter)
      .min(1)
      .max(eventFilter.options.length)
      .default(["job.*", "batch.*"])
      .describe("Which events, such as `job.failed`; `job.*` stands for all of jobs."),
    description: boundedText({ min: 0, max: 200 }).default("").describe("For people."),
  })
  .meta({ id: "WebhookRequest" });
export type WebhookRequest = z.infer<typeof webhookRequest>;

/** Where a project's events are sent. */
export const webhook = z
  .object({
    id: webhookId,
    url: z.string(),
    events: z.array(eventFilter),
    description: z.string(),
    createdAt: z.iso.datetime(),
    lastSuccessAt: z.iso.datetime().nullable().describe("When a delivery last succeeded."),
    disabledAt: z.iso.datetime().nullable().describe("Nothing is sent since; null while enabled."),
    disabledReason: z.string().nullable().describe("Why the service disabled it."),
    waitingDeliveries: z
      .int()
      .describe(
        `Events that are not delivered yet, at most ${limits.webhookWaitingDeliveries}: beyond ` +
          "that events are skipped, and never sent.",
      ),
    skippedEvents: z.int().describe("Events that were skipped since the webhook was created."),
    lastSkippedAt: z.iso
      .datetime()
      .nullable()
      .describe(
        "When an event was last skipped: ask for jobs and batches that changed until then.",
      ),
  })
  .meta({ id: "Webhook" });
export type Webhook = z.infer<typeof webhook>;

const secret = z
  .string()
  .describe("Key of the signatures, `whsec_` and base64, shown this once. See Standard Webhooks.");

export const createdWebhook = webhook.extend({ secret }).meta({ id: "CreatedWebhook" });
export type CreatedWebhook = z.infer<typeof createdWebhook>;

const deliveryStatus = z
  .enum(["pending", "delivered", "failed"])
  .describe(`\`failed\` after ${limits.webhookAttempts} attempts.`);

/** An event for a webhook, and how far its delivery is. */
export const webhookDelivery = z
  .object({
    id: deliveryId.describe("Also the header `webhook-id`, the same at each attempt."),
    type: z.string(),
    status: deliveryStatus,
    createdAt: z.iso.datetime(),
    attempts: z.int().describe("How often the event was sent."),
    lastAttemptAt: z.iso.datetime().nullable().describe("Null before the first attempt."),
    nextAttemptAt: z.iso
      .datetime()
      .nullable()
      .describe("When it is sent again; null for one that is delivered or failed."),
    responseStatus: z.int().nullable().describe("HTTP status of the last answer."),
    error: z.string().nullable().describe("What was wrong with the last attempt."),
  })
  .meta({ id: "WebhookDelivery" });
export type WebhookDelivery = z.infer<typeof webhookDelivery>;

export const webhookLinks = z.object({
  self: z
    .string()
    .describe(
      "Where programs find the whole of it; a path where the service does not know its public " +
        "address.",
    ),
  page: z
    .string()
    .optional()
    .describe("Its page on the dashboard, for people. Absent in events of an earlier version."),
});

/** Body of a delivery: the job or batch as lists and `GET /events` have it. */
export const webhookEvent = z
  .object({
    type: z.string(),
    timestamp: z.iso.datetime().describe("When the status changed."),
    data: z.union([
      jobSummary.extend({ links: webhookLinks }),
      batchSummary.extend({ links: webhookLinks }),
    ]),
  })
  .meta({ id: "WebhookEvent" });
export type WebhookEvent = z.infer<typeof webhookEvent>;
