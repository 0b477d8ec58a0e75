import { limits } from "../contract/limits.ts";
import {
  type AttemptOutcome,
  type DueDelivery,
  endDeliveryAttempt,
  retrySeconds,
  secondsLater,
} from "./end-delivery-attempt.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

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
      runWriteTransaction(store, (writing) => endDeliveryAttempt(writing, delivery, outcome)),
  };
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
    await beginAttemptOnce(writing, row.id, attempt);
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

async function beginAttemptOnce(
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
