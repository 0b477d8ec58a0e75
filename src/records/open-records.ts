import { Kysely } from "kysely";
import { attemptRecords } from "./attempts.ts";
import { baselineRecords } from "./baselines.ts";
import { batchRecords } from "./batches.ts";
import { Changes } from "./changes.ts";
import { heldRecords } from "./held.ts";
import { idempotencyRecords } from "./idempotency.ts";
import { identityRecords } from "./identities.ts";
import { jobRecords } from "./jobs.ts";
import { logRecords } from "./logs.ts";
import { migrate } from "./migrations.ts";
import { deliveryRecords } from "./deliveries.ts";
import { reportRecords } from "./reports.ts";
import type { Schema } from "./schema.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import type { Store } from "./store.ts";
import { tokenRecords } from "./tokens.ts";
import { workerRecords } from "./workers.ts";

export type Records = Awaited<ReturnType<typeof openRecords>>;

/** Opens the database file (or `:memory:`) and brings it to the present schema. */
export async function openRecords(path: string, { now }: { now: () => Date }) {
  const db = new Kysely<Schema>({ dialect: sqliteDialect(path) });
  await migrate(db);
  const store: Store = { db, changes: new Changes(), now };
  return {
    jobs: jobRecords(store),
    batches: batchRecords(store),
    baselines: baselineRecords(store),
    held: heldRecords(store),
    logs: logRecords(store),
    tokens: tokenRecords(store),
    identities: identityRecords(store),
    idempotency: idempotencyRecords(store),
    reports: reportRecords(store),
    deliveries: deliveryRecords(store),
    workers: workerRecords(store),
    attempts: attemptRecords(store),
    changes: store.changes,
    close: () => db.destroy(),
  };
}
