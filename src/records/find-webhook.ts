import type { Selectable } from "kysely";
import { type Webhook, webhook } from "../contract/jobs/webhook.ts";
import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

export async function findWebhook(
  { trx }: { readonly trx: Store["db"] },
  project: string,
  id: string,
): Promise<Webhook | undefined> {
  const row = await trx
    .selectFrom("webhooks")
    .selectAll()
    .where("id", "=", id)
    .where("project", "=", project)
    .executeTakeFirst();
  return row && parseWebhook(row);
}

export function parseWebhook(row: Selectable<Schema["webhooks"]>): Webhook {
  return webhook.parse({
    id: row.id,
    url: row.url,
    events: JSON.parse(row.events),
    description: row.description,
    createdAt: row.created_at,
    lastSuccessAt: row.last_success_at,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
    waitingDeliveries: row.waiting_deliveries,
    skippedEvents: row.skipped_events,
    lastSkippedAt: row.last_skipped_at,
  });
}
