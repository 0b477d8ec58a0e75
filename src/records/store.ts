import type { Kysely, Transaction } from "kysely";
import type { Changes, Effects } from "./changes.ts";
import type { Schema } from "./schema.ts";

/** The database, and what functions of records need besides it. */
export interface Store {
  readonly db: Kysely<Schema>;
  readonly changes: Changes;
  readonly now: () => Date;
  /** How many jobs of a project may wait when more are created. */
  readonly maxWaitingJobs: number;
}

/** A running write transaction. */
export interface WriteTransaction {
  readonly trx: Transaction<Schema>;
  readonly now: Date;
  readonly maxWaitingJobs: number;
  readonly effects: Effects;
}

/** Runs a write transaction and publishes its effects once they are committed. */
export async function runWriteTransaction<T>(
  store: Store,
  run: (writing: WriteTransaction) => Promise<T>,
): Promise<T> {
  const effects: Effects = {
    changed: new Set(),
    created: new Set(),
    cancelling: new Set(),
    ended: new Set(),
  };
  const result = await store.db
    .transaction()
    .execute((trx) =>
      run({ trx, now: store.now(), maxWaitingJobs: store.maxWaitingJobs, effects }),
    );
  store.changes.publish(effects);
  return result;
}

/** Runs queries that all see the same state, whatever is written meanwhile. */
export function runReadTransaction<T>(
  { db }: Store,
  run: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return db.transaction().setAccessMode("read only").execute(run);
}
