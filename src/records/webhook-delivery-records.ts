import type { Selectable } from "kysely";
import { ServiceError } from "../contract/errors.ts";
import { deliveryId } from "../contract/id.ts";
import { limits } from "../contract/limits.ts";
import type { DeliveryPage, DeliveryQuery } from "../contract/routes/webhook-routes.ts";
import { type WebhookDelivery, webhookDelivery } from "../contract/jobs/webhook.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import { buildPage, parseCursor } from "./build-page.ts";
import { deleteDeliveries } from "./delete-deliveries.ts";
import type { Schema } from "./schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

interface Replay {
  readonly webhookId: string;
  readonly id: string;
  readonly audit: AuditedChange;
}

const dayMs = 86_400_000;

/** Deliveries of webhooks, as their owners see them. */
export function webhookDeliveryRecords(store: Store) {
  return {
    list: (webhookId: string, query: DeliveryQuery) => listDeliveries(store, webhookId, query),

    /**
     * Has an event delivered again. Undefined where there is no such delivery.
     * @throws ServiceError too_many_deliveries
     */
    replay: (replay: Replay) =>
      runWriteTransaction(store, (writing) => replayDelivery(writing, replay)),

    /** Deletes deliveries after the time for which they are kept. */
    async purge(): Promise<void> {
      const oldest = new Date(store.now().getTime() - limits.webhookDeliveryDays * dayMs);
      await deleteDeliveries(store.db, (eb) => eb("created_at", "<", oldest.toISOString()));
    },
  };
}

async function listDeliveries(
  { db }: Store,
  webhookId: string,
  { cursor, limit }: DeliveryQuery,
): Promise<DeliveryPage> {
  let rows = db.selectFrom("webhook_deliveries").selectAll().where("webhook_id", "=", webhookId);
  if (cursor !== undefined) rows = rows.where("id", "<", parseCursor(cursor, deliveryId));
  const page = await rows
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const { entries, nextCursor } = buildPage(page, limit);
  return { deliveries: entries.map(parseDelivery), nextCursor };
}

async function replayDelivery(
  writing: WriteTransaction,
  { webhookId, id, audit }: Replay,
): Promise<WebhookDelivery | undefined> {
  const { trx, now, effects } = writing;
  const again = { status: "pending", attempts: 0, next_attempt_at: now.toISOString() };
  const row = await trx
    .updateTable("webhook_deliveries")
    .set(again)
    .where("id", "=", id)
    .where("webhook_id", "=", webhookId)
    .returningAll()
    .executeTakeFirst();
  if (!row) return undefined;
  await requireDeliveryRoom(writing, webhookId);
  await addAuditEntry(writing, audit, { subject: id });
  effects.sending.add(webhookId);
  return parseDelivery(row);
}

/** Counts the delivery that the transaction has set to wait. */
async function requireDeliveryRoom({ trx }: WriteTransaction, webhookId: string): Promise<void> {
  const { waiting_deliveries: waiting } = await trx
    .selectFrom("webhooks")
    .select("waiting_deliveries")
    .where("id", "=", webhookId)
    .executeTakeFirstOrThrow();
  const most = limits.webhookWaitingDeliveries;
  if (waiting <= most) return;
  const message = `${most} deliveries of the webhook wait, as many as may`;
  throw new ServiceError("too_many_deliveries", message);
}

function parseDelivery(row: Selectable<Schema["webhook_deliveries"]>): WebhookDelivery {
  return webhookDelivery.parse({
    id: row.id,
    type: row.type,
    status: row.status,
    createdAt: row.created_at,
    attempts: row.attempts,
    lastAttemptAt: row.last_attempt_at,
    nextAttemptAt: row.next_attempt_at,
    responseStatus: row.response_status,
    error: row.error,
  });
}
