import { addWaitingDeliveries } from "../database/counters.ts";
import type { Selectable } from "kysely";
import { deleteDeliveries } from "./delivery-records.ts";
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

async function isWaiting(trx: WriteTransaction["trx"], id: string): Promise<boolean> {
  const row = await trx
    .selectFrom("webhook_deliveries")
    .select("next_attempt_at")
    .where("id", "=", id)
    .executeTakeFirst();
  return typeof row?.next_attempt_at === "string";
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

/** A delivery whose attempt has begun. */
export interface DueDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly url: string;
  /** The event, a JSON text. */
  readonly body: string;
  /** The present one first. */
  readonly secrets: readonly string[];
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  readonly createdAt: string;
}

/** How an attempt ended. */
export interface AttemptOutcome {
  readonly isDelivered: boolean;
  readonly responseStatus: number | null;
  readonly error: string | null;
  /** The receiver wants nothing any more. */
  readonly isGone: boolean;
}

/** Seconds after the end of an attempt at which the next one begins. */
export function retrySeconds(attempt: number): number {
  const { webhookFirstRetrySeconds: first, webhookLongestRetrySeconds: longest } = limits;
  return Math.min(longest, first * 4 ** (attempt - 1));
}

export function secondsLater(now: Date, seconds: number): string {
  return new Date(now.getTime() + seconds * 1000).toISOString();
}

export async function endDeliveryAttempt(
  writing: WriteTransaction,
  delivery: DueDelivery,
  outcome: AttemptOutcome,
): Promise<void> {
  const { trx, now } = writing;
  const { isDelivered, isGone, responseStatus, error } = outcome;
  const isFailed = !isDelivered && (isGone || delivery.attempt >= limits.webhookAttempts);
  const isEnded = isDelivered || isFailed;
  if (isDelivered) await recordSuccess(writing, delivery);
  const wasWaiting = await isWaiting(trx, delivery.id);
  const { numUpdatedRows } = await trx
    .updateTable("webhook_deliveries")
    .set({
      status: isDelivered ? "delivered" : isFailed ? "failed" : "pending",
      response_status: responseStatus,
      error,
      next_attempt_at: isEnded ? null : secondsLater(now, retrySeconds(delivery.attempt)),
    })
    .where("id", "=", delivery.id)
    // One that was replayed meanwhile is sent again, however this attempt ended.
    .where("attempts", "=", delivery.attempt)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return;
  await addWaitingDeliveries(trx, delivery.webhookId, Number(!isEnded) - Number(wasWaiting));
  if (isFailed) await disableWebhook(writing, delivery, outcome);
}

async function recordSuccess(
  { trx, now }: WriteTransaction,
  { webhookId }: DueDelivery,
): Promise<void> {
  await trx
    .updateTable("webhooks")
    .set({ last_success_at: now.toISOString() })
    .where("id", "=", webhookId)
    .execute();
}

/** Disables a webhook whose receiver is gone, or took nothing since an event failed for days. */
async function disableWebhook(
  { trx, now }: WriteTransaction,
  { id, webhookId, attempt, createdAt }: DueDelivery,
  { isGone, error }: AttemptOutcome,
): Promise<void> {
  const reason = `Delivery "${id}" failed ${attempt} times, and no other succeeded meanwhile`;
  const webhook = trx
    .updateTable("webhooks")
    .set({
      disabled_at: now.toISOString(),
      disabled_reason: isGone ? error : `${reason}: ${error}`,
    })
    .where("id", "=", webhookId)
    .where("disabled_at", "is", null);
  const silent = webhook.where((eb) =>
    eb.or([eb("last_success_at", "is", null), eb("last_success_at", "<", createdAt)]),
  );
  await (isGone ? webhook : silent).execute();
}
