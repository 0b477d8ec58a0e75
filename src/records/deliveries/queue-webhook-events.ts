import type { Insertable } from "kysely";
import { isId, newId } from "../../contract/id.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import type { BatchSummary } from "../../contract/batches/batch.ts";
import {
  eventType,
  isWanted,
  webhook,
  type WebhookEvent,
} from "../../contract/deliveries/webhook.ts";
import { limits } from "../../contract/limits.ts";
import { batchAddress, jobAddress } from "../../contract/page-addresses.ts";
import { addWaitingDeliveries } from "../database/counters.ts";
import { chunkRows } from "../database/rows.ts";
import type { Schema } from "../database/schema.ts";
import type { WriteTransaction } from "../database/store.ts";

/** A job or batch whose status changed. */
type Changed = JobSummary | BatchSummary;

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
  await addWaitingDeliveries(trx, webhookId, events.length);
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
  changed: Changed,
  now: Date,
): Insertable<Schema["webhook_deliveries"]> {
  const { id } = changed;
  const type = changeType(changed);
  const at = now.toISOString();
  const page = isId("job", id) ? jobAddress(id) : batchAddress(id);
  const data = { ...changed, links: { self: `/v1${page}`, page } };
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
