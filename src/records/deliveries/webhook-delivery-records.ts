import { addWaitingDeliveries } from "../database/counters.ts";
import type { Expression, ExpressionBuilder, Selectable, SqlBool } from "kysely";
import { isWaiting } from "./webhook-queue.ts";
import { ServiceError } from "../../contract/errors.ts";
import { deliveryId } from "../../contract/id.ts";
import { type WebhookDelivery, webhookDelivery } from "../../contract/deliveries/webhook.ts";
import { limits } from "../../contract/limits.ts";
import type { DeliveryPage, DeliveryQuery } from "../../contract/routes/webhook-routes.ts";
import { buildPage, parseCursor } from "../database/rows.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";

const dayMs = 86_400_000;

/** Deliveries of webhooks, as their owners see them. */
export function webhookDeliveryRecords(store: Store) {
  return {
    async list(webhookId: string, { cursor, limit }: DeliveryQuery): Promise<DeliveryPage> {
      const all = store.db.selectFrom("webhook_deliveries").selectAll();
      let rows = all.where("webhook_id", "=", webhookId);
      if (cursor !== undefined) rows = rows.where("id", "<", parseCursor(cursor, deliveryId));
      const page = await rows
        .orderBy("id", "desc")
        .limit(limit + 1)
        .execute();
      const { entries, nextCursor } = buildPage(page, limit);
      return { deliveries: entries.map(parseDelivery), nextCursor };
    },

    /**
     * Has an event delivered again. Undefined if there is no such delivery.
     * @throws ServiceError too_many_deliveries
     */
    replay: (webhookId: string, id: string, audit: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { trx, now, effects } = writing;
        const wasWaiting = await isWaiting(trx, id);
        const again = { status: "pending", attempts: 0, next_attempt_at: now.toISOString() };
        const row = await trx
          .updateTable("webhook_deliveries")
          .set(again)
          .where("id", "=", id)
          .where("webhook_id", "=", webhookId)
          .returningAll()
          .executeTakeFirst();
        if (!row) return undefined;
        await addWaitingDeliveries(trx, webhookId, 1 - Number(wasWaiting));
        await requireDeliveryRoom(writing, webhookId);
        await addAuditEntry(writing, audit, id);
        effects.sending.add(webhookId);
        return parseDelivery(row);
      }),

    /** Deletes deliveries after the time for which they are kept. */
    async purge(): Promise<void> {
      const oldest = new Date(store.now().getTime() - limits.webhookDeliveryDays * dayMs);
      await deleteDeliveries(store, (eb) => eb("created_at", "<", oldest.toISOString()));
    },
  };
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
  const message = `The webhook has ${most} deliveries waiting already, the most allowed`;
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

/** Rows that one transaction deletes: others wait for it. */
const deliveriesPerStep = 2_000;

/** Deletes deliveries of webhooks in steps: a deletion that is interrupted can be repeated. */
export async function deleteDeliveries(
  store: Store,
  isDeleted: (eb: ExpressionBuilder<Schema, "webhook_deliveries">) => Expression<SqlBool>,
): Promise<void> {
  for (let count = deliveriesPerStep; count === deliveriesPerStep;) {
    count = await runWriteTransaction(store, async ({ trx }) => {
      const ids = trx.selectFrom("webhook_deliveries").select("id").where(isDeleted);
      const deleted = await trx
        .deleteFrom("webhook_deliveries")
        .where("id", "in", ids.limit(deliveriesPerStep))
        .returning(["webhook_id", "next_attempt_at"])
        .execute();
      const waiting = deleted.filter((row) => row.next_attempt_at !== null);
      const byWebhook = Map.groupBy(waiting, (row) => row.webhook_id);
      for (const [webhookId, rows] of byWebhook) {
        await addWaitingDeliveries(trx, webhookId, -rows.length);
      }
      return deleted.length;
    });
  }
}
