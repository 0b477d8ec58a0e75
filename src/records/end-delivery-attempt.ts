import { limits } from "../contract/limits.ts";
import type { WriteTransaction } from "./store.ts";

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
  await trx
    .updateTable("webhook_deliveries")
    .set({
      status: isDelivered ? "delivered" : isFailed ? "failed" : "pending",
      response_status: responseStatus,
      error,
      next_attempt_at: isEnded ? null : secondsLater(now, retrySeconds(delivery.attempt)),
    })
    .where("id", "=", delivery.id)
    .execute();
  if (isDelivered) await recordSuccess(writing, delivery);
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
