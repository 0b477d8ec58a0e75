import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import type { Schema } from "../database/schema.ts";
import { addWaitingDeliveries } from "../database/counters.ts";
import { runWriteTransaction, type Store } from "../database/store.ts";

/**
 * Events of GitHub that were received, so that none counts twice. They are kept forever: signatures
 * do not expire.
 */
export function deliveryRecords(store: Store) {
  return {
    /** False where the event was received before. */
    async begin(id: string): Promise<boolean> {
      const { numInsertedOrUpdatedRows } = await store.db
        .insertInto("github_deliveries")
        .values({ id })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 1n;
    },

    /** Lets GitHub deliver an event again that had no effect. */
    async abandon(id: string): Promise<void> {
      await store.db.deleteFrom("github_deliveries").where("id", "=", id).execute();
    },
  };
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
