import { type Kysely, sql, type Transaction } from "kysely";
import { type Changes, type CommittedChanges, noChanges } from "./changes.ts";
import type { Replica } from "./replica.ts";
import type { Schema } from "./schema.ts";

/** A database that is open, at the present schema. */
export interface Database {
  readonly db: Kysely<Schema>;
  /** This process among those that work on the database. */
  readonly replica: Replica;
  /** Notifies other replicas of what a transaction does, once it is committed. */
  readonly announce: (trx: Transaction<Schema>, effects: CommittedChanges) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** The database, and what functions of records need besides it. */
export interface Store extends Omit<Database, "close"> {
  readonly changes: Changes;
  readonly now: () => Date;
  /** How many jobs of a project may wait when more are created. */
  readonly maxWaitingJobs: number;
}

export interface WriteTransaction {
  readonly trx: Transaction<Schema>;
  readonly now: Date;
  readonly maxWaitingJobs: number;
  readonly replica: Replica;
  readonly effects: CommittedChanges;
}

/** Runs a write transaction and publishes its effects once they are committed. */
export async function runWriteTransaction<T>(
  store: Store,
  run: (writing: WriteTransaction) => Promise<T>,
): Promise<T> {
  const effects = noChanges();
  const { maxWaitingJobs, replica } = store;
  let isCommitting = false;
  const committing = store.db.transaction().execute(async (trx) => {
    const done = await run({ trx, now: store.now(), maxWaitingJobs, replica, effects });
    await store.announce(trx, effects);
    isCommitting = true;
    return done;
  });
  const result = await committing.catch((error: unknown) => {
    // Readers may see what was not flushed, or whose answer the connection lost.
    if (isCommitting) store.changes.publishGap();
    throw error;
  });
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

export async function runStatements(
  db: Kysely<unknown>,
  statements: readonly string[],
): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}
