import type { ExpressionBuilder, Expression, SqlBool } from "kysely";
import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

/** Rows that one transaction deletes: others wait for it. */
const deliveriesPerStep = 2_000;

/** Deletes deliveries of webhooks in steps: a deletion that is interrupted can be repeated. */
export async function deleteDeliveries(
  db: Store["db"],
  isDeleted: (eb: ExpressionBuilder<Schema, "webhook_deliveries">) => Expression<SqlBool>,
): Promise<void> {
  for (;;) {
    const ids = db.selectFrom("webhook_deliveries").select("id").where(isDeleted);
    const { numDeletedRows } = await db
      .deleteFrom("webhook_deliveries")
      .where("id", "in", ids.limit(deliveriesPerStep))
      .executeTakeFirstOrThrow();
    if (numDeletedRows < deliveriesPerStep) return;
  }
}
