import type { Insertable } from "kysely";
import { isId, newId } from "../contract/id.ts";
import { limits } from "../contract/limits.ts";
import { eventType, isWanted, webhook, type WebhookEvent } from "../contract/jobs/webhook.ts";
import { chunkRows } from "./chunk-rows.ts";
import type { Schema } from "./schema.ts";
import type { WriteTransaction } from "./store.ts";

/** A job or batch whose status changed. */
interface Changed {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  /** Of a job. */
  readonly batchId?: string | null;
}

/**
 * Queues the events of changed statuses for the project's webhooks, with the change itself. What is
 * beyond a webhook's limit is skipped.
 */
export async function queueWebhookEvents(
  writing: WriteTransaction,
  project: string,
  changed: readonly Changed[],
): Promise<void> {
  const webhooks = await writing.trx
    .selectFrom("webhooks")
    .select(["id", "events", "waiting_deliveries"])
    .where("project", "=", project)
    .where("disabled_at", "is", null)
    .execute();
  for (const { id, events, waiting_deliveries: waiting } of webhooks) {
    const filters = webhook.shape.events.parse(JSON.parse(events));
    const wanted = changed.filter((each) => isWanted(changeType(each), filters));
    const room = Math.max(0, limits.webhookWaitingDeliveries - waiting);
    await insertDeliveries(writing, id, wanted.slice(0, room));
    if (wanted.length > room) await recordSkipped(writing, id, wanted.length - room);
  }
}

async function insertDeliveries(
  { trx, now, effects }: WriteTransaction,
  webhookId: string,
  events: readonly Changed[],
): Promise<void> {
  for (const chunk of chunkRows(events)) {
    const rows = chunk.map((event) => deliveryRow(webhookId, event, now));
    await trx.insertInto("webhook_deliveries").values(rows).execute();
    effects.sending.add(webhookId);
  }
}

async function recordSkipped(
  { trx, now }: WriteTransaction,
  webhookId: string,
  count: number,
): Promise<void> {
  await trx
    .updateTable("webhooks")
    .set((eb) => ({
      skipped_events: eb("skipped_events", "+", count),
      last_skipped_at: now.toISOString(),
    }))
    .where("id", "=", webhookId)
    .execute();
}

function changeType({ id, status }: Changed) {
  return eventType(isId("job", id) ? "job" : "batch", status);
}

function deliveryRow(
  webhookId: string,
  { id, name, status, batchId }: Changed,
  now: Date,
): Insertable<Schema["webhook_deliveries"]> {
  const type = changeType({ id, name, status });
  const at = now.toISOString();
  const self = `/v1/${isId("job", id) ? "jobs" : "batches"}/${id}`;
  const data = { id, name, status, batchId, links: { self } };
  return {
    id: newId("delivery", now),
    webhook_id: webhookId,
    type,
    body: JSON.stringify({ type, timestamp: at, data } satisfies WebhookEvent),
    status: "pending",
    created_at: at,
    attempts: 0,
    next_attempt_at: at,
  };
}
