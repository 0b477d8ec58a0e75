import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import { Pool, type PoolClient, type PoolConfig } from "pg";
import { groupCommit } from "./group-commit.ts";
import { lockIds } from "./lock-ids.ts";
import { createMutex } from "../../limits/mutex.ts";
import { postgresConnectionOptions } from "./postgres-connection-options.ts";
import { translatePostgresError } from "./postgres-errors.ts";

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
  const lock = createMutex();
  const flush = groupCommit(async () => forceFlush(flushing));
  const begin = (isWriting: boolean) =>
    isWriting ? beginWriting(writing, lock) : beginReading(reading);
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

/** Connections to the server, which are made when they are needed and again when they were lost. */
function openPostgresPool(url: string, options: PoolConfig): Pool {
  const pool = new Pool({ ...postgresConnectionOptions(url), ...options });
  // The query reports a connection that is lost to its caller; without listeners it is a crash.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

class PostgresConnection implements DatabaseConnection {
  readonly #execute: (query: CompiledQuery) => Promise<QueryResult<unknown>>;
  transaction: PostgresTransaction | undefined;

  constructor(execute: (query: CompiledQuery) => Promise<QueryResult<unknown>>) {
    this.#execute = execute;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const result = this.transaction
      ? await executePostgres(this.transaction.client, query)
      : await this.#execute(query);
    return result as QueryResult<R>;
  }

  streamQuery(): never {
    throw new TypeError("No query is streamed");
  }
}

function asPostgres(connection: DatabaseConnection): PostgresConnection {
  if (connection instanceof PostgresConnection) return connection;
  throw new TypeError("The connection is another driver's");
}

/** @throws ServiceError unavailable, storage_full */
async function executePostgres(
  client: Pick<PoolClient, "query">,
  { sql, parameters }: CompiledQuery,
): Promise<QueryResult<unknown>> {
  try {
    const { rows, command, rowCount } = await client.query(sql, [...parameters]);
    const isChange = ["INSERT", "UPDATE", "DELETE"].includes(command);
    return isChange ? { rows, numAffectedRows: BigInt(rowCount ?? 0) } : { rows };
  } catch (error) {
    throw translatePostgresError(error);
  }
}

/** The transaction of a connection, on one of the server's. */
interface PostgresTransaction {
  readonly client: PoolClient;
  readonly isWriting: boolean;
  /** Gives the server's connection back, or ends it. */
  readonly end: (isBroken: boolean) => void;
}

/** A transaction that begins when all others of the database have ended. */
async function beginWriting(
  pool: Pool,
  lock: () => Promise<() => void>,
): Promise<PostgresTransaction> {
  const endTurn = await lock();
  const statements = `begin; select pg_advisory_xact_lock(${lockIds.writing}, 0)`;
  try {
    return { ...(await beginTransaction(pool, statements, endTurn)), isWriting: true };
  } catch (error) {
    endTurn();
    throw error;
  }
}

/** A transaction that sees one state, whatever is written meanwhile. */
async function beginReading(pool: Pool): Promise<PostgresTransaction> {
  const statements = "begin isolation level repeatable read read only";
  return { ...(await beginTransaction(pool, statements, () => {})), isWriting: false };
}

async function beginTransaction(
  pool: Pool,
  statements: string,
  onEnd: () => void,
): Promise<Omit<PostgresTransaction, "isWriting">> {
  try {
    const client = await pool.connect();
    await client.query(statements).catch((error: unknown) => {
      client.release(true);
      throw error;
    });
    const end = (isBroken: boolean) => {
      client.release(isBroken);
      onEnd();
    };
    return { client, end };
  } catch (error) {
    throw translatePostgresError(error);
  }
}

async function endPostgresTransaction(
  { client, end }: PostgresTransaction,
  statement: "commit" | "rollback",
): Promise<void> {
  let isBroken = true;
  try {
    const { command } = await client.query(statement);
    isBroken = false;
    // The server answers so, without an error, where an earlier statement failed.
    if (command !== statement.toUpperCase()) throw new Error("The transaction was rolled back");
  } catch (error) {
    throw translatePostgresError(error);
  } finally {
    end(isBroken);
  }
}

/** Where that fails, the server rolls back at the end of the connection. */
async function rollBack(transaction: PostgresTransaction): Promise<void> {
  await endPostgresTransaction(transaction, "rollback").catch(() => {});
}
