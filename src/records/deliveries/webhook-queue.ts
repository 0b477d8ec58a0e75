import { limits } from "../../contract/limits.ts";
import { addWaitingDeliveries } from "../database/counters.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** What is to be sent to webhooks of all projects. */
export function webhookQueue(store: Store) {
  return {
    /** Webhooks with deliveries that are due. */
    listDue: () => listDueWebhooks(store),

    /**
     * Begins attempts at a webhook's deliveries that are due, the oldest first. The next attempt is
     * set before, so that one that a crash interrupts is repeated.
     */
    begin: (webhookId: string, count: number) =>
      runWriteTransaction(store, (writing) => beginAttempts(writing, webhookId, count)),

    end: (delivery: DueDelivery, outcome: AttemptOutcome) =>
      runWriteTransaction(store, (writing) => endAttempt(writing, delivery, outcome)),
  };
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

async function listDueWebhooks({ db, now }: Store): Promise<string[]> {
  const at = now().toISOString();
  const rows = await db
    .selectFrom("webhooks")
    .select("id")
    .where("disabled_at", "is", null)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom("webhook_deliveries")
          .select("id")
          .whereRef("webhook_id", "=", "webhooks.id")
          .where("next_attempt_at", "<=", at),
      ),
    )
    .execute();
  return rows.map(({ id }) => id);
}

async function beginAttempts(
  writing: WriteTransaction,
  webhookId: string,
  count: number,
): Promise<DueDelivery[]> {
  const at = writing.now.toISOString();
  const begun: DueDelivery[] = [];
  for (const { secret, old_secret: old, old_secret_until, ...row } of await selectDue(
    writing,
    webhookId,
    count,
  )) {
    const attempt = row.attempts + 1;
    await recordAttemptStart(writing, row.id, attempt);
    const isOldUsed = old !== null && (old_secret_until ?? "") > at;
    const secrets = isOldUsed ? [secret, old] : [secret];
    begun.push({ ...row, webhookId, secrets, attempt });
  }
  return begun;
}

async function selectDue({ trx, now }: WriteTransaction, webhookId: string, count: number) {
  return trx
    .selectFrom("webhook_deliveries as delivery")
    .innerJoin("webhooks", "webhooks.id", "delivery.webhook_id")
    .select(["delivery.id", "delivery.body", "delivery.attempts"])
    .select(["delivery.created_at as createdAt", "url"])
    .select(["secret", "old_secret", "old_secret_until"])
    .where("delivery.webhook_id", "=", webhookId)
    .where("delivery.next_attempt_at", "<=", now.toISOString())
    .where("webhooks.disabled_at", "is", null)
    .orderBy("delivery.next_attempt_at")
    .limit(count)
    .execute();
}

async function recordAttemptStart(
  { trx, now }: WriteTransaction,
  id: string,
  attempt: number,
): Promise<void> {
  await trx
    .updateTable("webhook_deliveries")
    .set({
      attempts: attempt,
      response_status: null,
      error: null,
      last_attempt_at: now.toISOString(),
      next_attempt_at: secondsLater(now, limits.webhookAnswerSeconds + retrySeconds(attempt)),
    })
    .where("id", "=", id)
    .execute();
}

/** Seconds after the end of an attempt at which the next one begins. */
function retrySeconds(attempt: number): number {
  const { webhookFirstRetrySeconds: first, webhookLongestRetrySeconds: longest } = limits;
  return Math.min(longest, first * 4 ** (attempt - 1));
}

function secondsLater(now: Date, seconds: number): string {
  return new Date(now.getTime() + seconds * 1000).toISOString();
}

async function endAttempt(
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

/** Disables a webhook whose receiver is gone or has accepted nothing since the failed event. */
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

/** Whether a delivery is to be sent, or sent again. */
export async function isWaiting(trx: WriteTransaction["trx"], id: string): Promise<boolean> {
  const row = await trx
    .selectFrom("webhook_deliveries")
    .select("next_attempt_at")
    .where("id", "=", id)
    .executeTakeFirst();
  return typeof row?.next_attempt_at === "string";
}
