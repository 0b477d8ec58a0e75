import type { Insertable } from "kysely";
import { isId, newId } from "../contract/id.ts";
import { eventType, isWanted, webhook, type WebhookEvent } from "../contract/webhook.ts";
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

const rowsPerInsert = 100;

/** Queues the events of changed statuses for the project's webhooks, with the change itself. */
export async function queueWebhookEvents(
  { trx, now, effects }: WriteTransaction,
  project: string,
  changed: readonly Changed[],
): Promise<void> {
  const webhooks = await trx
    .selectFrom("webhooks")
    .select(["id", "events"])
    .where("project", "=", project)
    .where("disabled_at", "is", null)
    .execute();
  const rows = webhooks.flatMap(({ id, events }) => {
    const wanted = webhook.shape.events.parse(JSON.parse(events));
    return changed
      .filter((each) => isWanted(changeType(each), wanted))
      .map((each) => deliveryRow(id, each, now));
  });
  for (let start = 0; start < rows.length; start += rowsPerInsert) {
    const chunk = rows.slice(start, start + rowsPerInsert);
    await trx.insertInto("webhook_deliveries").values(chunk).execute();
    for (const { webhook_id: id } of chunk) effects.changed.add(id);
  }
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
