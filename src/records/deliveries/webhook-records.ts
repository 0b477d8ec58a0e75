import type { Selectable } from "kysely";
import { deleteDeliveries } from "./webhook-delivery-records.ts";
import { ServiceError } from "../../contract/errors.ts";
import { newId } from "../../contract/id.ts";
import {
  type CreatedWebhook,
  type Webhook,
  webhook,
  type WebhookRequest,
} from "../../contract/deliveries/webhook.ts";
import { limits } from "../../contract/limits.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";
import { createOnce, type CreatingRequest } from "../people/idempotency-records.ts";

/** A webhook of a project, and who changes it. */
interface WebhookChange {
  readonly project: string;
  readonly id: string;
  readonly audit: AuditedChange;
}

export function webhookRecords(store: Store) {
  const { db } = store;
  return {
    create: (
      project: string,
      { url, events, description, secret }: WebhookRequest & { readonly secret: string },
      { idempotency, audit }: CreatingRequest,
    ): Promise<CreatedWebhook> =>
      createOnce(store, idempotency, async (writing) => {
        const { trx, now } = writing;
        await requireWebhookRoom(writing, project);
        const id = newId("webhook", now);
        const row = { id, project, url, description, secret, created_at: now.toISOString() };
        await trx
          .insertInto("webhooks")
          .values({ ...row, events: JSON.stringify(events) })
          .execute();
        const made = await findWebhook(trx, project, id);
        if (!made) throw new TypeError("No webhook was created");
        await addAuditEntry(writing, audit, id);
        return { ...made, secret };
      }),

    async list(project: string): Promise<Webhook[]> {
      const webhooks = db.selectFrom("webhooks").selectAll().where("project", "=", project);
      return (await webhooks.orderBy("id").execute()).map(parseWebhook);
    },

    find: (project: string, id: string) => findWebhook(db, project, id),

    /** Signs with the new secret, and until a time with the old one too. */
    rotate: (
      { project, id, audit }: WebhookChange,
      { secret, oldUntil }: { readonly secret: string; readonly oldUntil: string },
    ): Promise<CreatedWebhook | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const found = await findWebhook(writing.trx, project, id);
        if (!found) return undefined;
        await addAuditEntry(writing, audit, id);
        await writing.trx
          .updateTable("webhooks")
          .set((eb) => ({ old_secret: eb.ref("secret"), old_secret_until: oldUntil, secret }))
          .where("id", "=", id)
          .execute();
        return { ...found, secret };
      }),

    enable: ({ project, id, audit }: WebhookChange): Promise<Webhook | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const { trx, effects } = writing;
        if (!(await findWebhook(trx, project, id))) return undefined;
        await addAuditEntry(writing, audit, id);
        await trx
          .updateTable("webhooks")
          .set({ disabled_at: null, disabled_reason: null })
          .where("id", "=", id)
          .execute();
        effects.sending.add(id);
        return findWebhook(trx, project, id);
      }),

    /**
     * False if there is none. It is disabled first: that gets it no more deliveries while those
     * it has are deleted.
     */
    async delete({ project, id, audit }: WebhookChange): Promise<boolean> {
      const isThere = await runWriteTransaction(store, async (writing) => {
        const { trx, now } = writing;
        if (!(await findWebhook(trx, project, id))) return false;
        await addAuditEntry(writing, audit, id);
        const disabled = { disabled_at: now.toISOString(), disabled_reason: "It is deleted" };
        await trx.updateTable("webhooks").set(disabled).where("id", "=", id).execute();
        return true;
      });
      if (!isThere) return false;
      await deleteDeliveries(store, (eb) => eb("webhook_id", "=", id));
      await runWriteTransaction(store, async ({ trx }) => {
        await trx.deleteFrom("webhook_deliveries").where("webhook_id", "=", id).execute();
        await trx.deleteFrom("webhooks").where("id", "=", id).execute();
      });
      return true;
    },
  };
}

async function requireWebhookRoom({ trx }: WriteTransaction, project: string): Promise<void> {
  const { count } = await trx
    .selectFrom("webhooks")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("project", "=", project)
    .executeTakeFirstOrThrow();
  if (Number(count) >= limits.webhooks) {
    const message = `The project has ${count} webhooks; at most ${limits.webhooks} are allowed`;
    throw new ServiceError("too_many_webhooks", message);
  }
}

async function findWebhook(
  db: Store["db"],
  project: string,
  id: string,
): Promise<Webhook | undefined> {
  const row = await db
    .selectFrom("webhooks")
    .selectAll()
    .where("id", "=", id)
    .where("project", "=", project)
    .executeTakeFirst();
  return row && parseWebhook(row);
}

function parseWebhook(row: Selectable<Schema["webhooks"]>): Webhook {
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
