import type { Selectable } from "kysely";
import { deleteDeliveries } from "./delivery-records.ts";
import { ServiceError } from "../../contract/errors.ts";
import { newId } from "../../contract/id.ts";
import {
  type CreatedWebhook,
  type Webhook,
  webhook,
  type WebhookRequest,
} from "../../contract/jobs/webhook.ts";
import { limits } from "../../contract/limits.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";
import { addAuditEntry, type AuditedChange } from "../people/add-audit-entry.ts";
import { type CreatingRequest, recordCreation } from "../people/record-creation.ts";

/** A webhook of a project, and who changes it. */
interface WebhookChange {
  readonly project: string;
  readonly id: string;
  readonly audit: AuditedChange;
}

/** Webhooks of projects. */
export function webhookRecords(store: Store) {
  return {
    create: (
      project: string,
      request: WebhookRequest & { readonly secret: string },
      creating: CreatingRequest<CreatedWebhook>,
    ) =>
      runWriteTransaction(store, (writing) => insertWebhook(writing, project, request, creating)),

    async list(project: string): Promise<Webhook[]> {
      const webhooks = store.db.selectFrom("webhooks").selectAll().where("project", "=", project);
      return (await webhooks.orderBy("id").execute()).map(parseWebhook);
    },

    find: (project: string, id: string) => findWebhook({ trx: store.db }, project, id),

    /** Signs with the new secret, and until a time with the old one too. */
    rotate: (change: WebhookChange, rotation: { secret: string; oldUntil: string }) =>
      runWriteTransaction(store, (writing) => rotateSecret(writing, change, rotation)),

    enable: (change: WebhookChange) =>
      runWriteTransaction(store, (writing) => enableWebhook(writing, change)),

    /** False where there is none. */
    delete: (change: WebhookChange) => deleteWebhook(store, change),
  };
}

async function insertWebhook(
  writing: WriteTransaction,
  project: string,
  { url, events, description, secret }: WebhookRequest & { readonly secret: string },
  creating: CreatingRequest<CreatedWebhook>,
): Promise<CreatedWebhook> {
  const { trx, now } = writing;
  await requireWebhookRoom(writing, project);
  const id = newId("webhook", now);
  const row = { id, project, url, description, secret, created_at: now.toISOString() };
  await trx
    .insertInto("webhooks")
    .values({ ...row, events: JSON.stringify(events) })
    .execute();
  const made = await findWebhook(writing, project, id);
  if (!made) throw new TypeError("No webhook was created");
  const created = { ...made, secret };
  await recordCreation(writing, created, creating);
  return created;
}

async function requireWebhookRoom({ trx }: WriteTransaction, project: string): Promise<void> {
  const { count } = await trx
    .selectFrom("webhooks")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("project", "=", project)
    .executeTakeFirstOrThrow();
  if (Number(count) >= limits.webhooks) {
    const message = `The project has ${count} webhooks, of ${limits.webhooks} at most`;
    throw new ServiceError("too_many_webhooks", message);
  }
}

async function rotateSecret(
  writing: WriteTransaction,
  change: WebhookChange,
  { secret, oldUntil }: { readonly secret: string; readonly oldUntil: string },
): Promise<CreatedWebhook | undefined> {
  const found = await findWebhook(writing, change.project, change.id);
  if (!found) return undefined;
  await addAuditEntry(writing, change.audit, { subject: change.id });
  await writing.trx
    .updateTable("webhooks")
    .set((eb) => ({ old_secret: eb.ref("secret"), old_secret_until: oldUntil, secret }))
    .where("id", "=", change.id)
    .execute();
  return { ...found, secret };
}

async function enableWebhook(
  writing: WriteTransaction,
  { project, id, audit }: WebhookChange,
): Promise<Webhook | undefined> {
  if (!(await findWebhook(writing, project, id))) return undefined;
  await addAuditEntry(writing, audit, { subject: id });
  await writing.trx
    .updateTable("webhooks")
    .set({ disabled_at: null, disabled_reason: null })
    .where("id", "=", id)
    .execute();
  writing.effects.sending.add(id);
  return findWebhook(writing, project, id);
}

/** It is disabled first: that gets it no more deliveries while those it has are deleted. */
async function deleteWebhook(store: Store, change: WebhookChange): Promise<boolean> {
  const isThere = await runWriteTransaction(store, (writing) => beginDeletion(writing, change));
  if (!isThere) return false;
  await deleteDeliveries(store, (eb) => eb("webhook_id", "=", change.id));
  await runWriteTransaction(store, async ({ trx }) => {
    await trx.deleteFrom("webhook_deliveries").where("webhook_id", "=", change.id).execute();
    await trx.deleteFrom("webhooks").where("id", "=", change.id).execute();
  });
  return true;
}

async function beginDeletion(
  writing: WriteTransaction,
  { project, id, audit }: WebhookChange,
): Promise<boolean> {
  if (!(await findWebhook(writing, project, id))) return false;
  await addAuditEntry(writing, audit, { subject: id });
  const disabled = { disabled_at: writing.now.toISOString(), disabled_reason: "It is deleted" };
  await writing.trx.updateTable("webhooks").set(disabled).where("id", "=", id).execute();
  return true;
}

async function findWebhook(
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
