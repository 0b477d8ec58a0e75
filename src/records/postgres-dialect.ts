import {
  type CompiledQuery,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import type { Pool } from "pg";
import { createTurns } from "./create-turns.ts";
import { shareFlushes } from "./share-flushes.ts";
import { openPostgresPool } from "./open-postgres-pool.ts";
import { asPostgres, executePostgres, PostgresConnection } from "./postgres-connection.ts";
import {
  beginReading,
  beginWriting,
  endPostgresTransaction,
  type PostgresTransaction,
  rollBack,
} from "./postgres-transaction.ts";
import { translatePostgresError } from "./translate-postgres-error.ts";

/** Connections for reading. */
const readers = 8;
/** Time for another process' write transaction, and within one between two statements. */
const lockMs = 5_000;
const idleMs = 10_000;

/**
 * Kysely's PostgreSQL dialect with the order that SQLite has: write transactions of all processes
 * run one after the other. They commit without a flush, so that the next one does not wait for it;
 * what was written survives a power failure as soon as its promise resolves, and readers can see it
 * a moment earlier.
 */
export function postgresDialect(url: string): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => createPostgresDriver(url),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

function createPostgresDriver(url: string): Driver {
  const { reading, writing, flushing } = openPools(url);
  const takeTurn = createTurns();
  const flush = shareFlushes(async () => forceFlush(flushing));
  const begin = (isWriting: boolean) =>
    isWriting ? beginWriting(writing, takeTurn) : beginReading(reading);
  const execute = async (query: CompiledQuery) => {
    if (SelectQueryNode.is(query.query)) return executePostgres(reading, query);
    const result = await executeAlone(await begin(true), query);
    await flush();
    return result;
  };
  return {
    // What an earlier process committed last may not have been flushed.
    init: flush,
    acquireConnection: async () => new PostgresConnection(execute),
    releaseConnection: async () => {},
    async beginTransaction(connection, { accessMode }) {
      asPostgres(connection).transaction = await begin(accessMode !== "read only");
    },
    async commitTransaction(connection) {
      const { transaction } = asPostgres(connection);
      asPostgres(connection).transaction = undefined;
      if (transaction === undefined) return;
      await endPostgresTransaction(transaction, "commit");
      if (transaction.isWriting) await flush();
    },
    async rollbackTransaction(connection) {
      const { transaction } = asPostgres(connection);
      asPostgres(connection).transaction = undefined;
      if (transaction !== undefined) await rollBack(transaction);
    },
    async destroy() {
      await Promise.all([reading, writing, flushing].map((pool) => pool.end()));
    },
  };
}

function openPools(url: string) {
  return {
    reading: openPostgresPool(url, { max: readers }),
    writing: openPostgresPool(url, {
      max: 1,
      idleTimeoutMillis: 0,
      lock_timeout: lockMs,
      idle_in_transaction_session_timeout: idleMs,
      options: "-c synchronous_commit=off",
    }),
    flushing: openPostgresPool(url, { max: 1, idleTimeoutMillis: 0 }),
  };
}

/** A commit that the server flushes takes along all that was committed before it. */
async function forceFlush(pool: Pool): Promise<void> {
  try {
    await pool.query("select pg_logical_emit_message(true, 'flush', '')");
  } catch (error) {
    throw translatePostgresError(error);
  }
}

async function executeAlone(
  transaction: PostgresTransaction,
  query: CompiledQuery,
): Promise<QueryResult<unknown>> {
  const result = await executePostgres(transaction.client, query).catch(async (error: unknown) => {
    await rollBack(transaction);
    throw error;
  });
  await endPostgresTransaction(transaction, "commit");
  return result;
}
