import { type FileHandle, open } from "node:fs/promises";
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { groupCommit } from "./group-commit.ts";
import { createMutex } from "../../limits/mutex.ts";
import { busyDeadline, retryWhileBusy } from "./retry-while-busy.ts";
import { openSqliteDatabase, type SqliteDatabase } from "./sqlite-database.ts";
import { ServiceError } from "../../contract/errors.ts";

/**
 * Kysely's SQLite dialect on the SQLite that is built into Node. Reading waits neither for the
 * service's own transactions nor for another process that writes. What was written survives a power
 * failure as soon as its promise resolves; readers can see it a moment earlier.
 */
export function sqliteDialect(path: string, options: SqliteOptions = {}): Dialect {
  return {
    createAdapter: () => new ConcurrentSqliteAdapter(),
    createDriver: () => createSqliteDriver(path, options),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

interface SqliteOptions {
  /** Whether nobody else may have the file open meanwhile. */
  readonly isExclusive?: boolean;
  /** One in memory that is open already. */
  readonly opened?: SqliteDatabase;
}

export function openMemoryDatabase(): SqliteDatabase {
  return openSqliteDatabase(":memory:", writerPragmas);
}

/** Its driver orders statements itself, rather than one connection after the other. */
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/**
 * Commits are flushed by `openWriteAheadLog()`; with `normal` SQLite flushes what a checkpoint
 * depends on, and blocks the thread meanwhile: it does so every 8,000 pages, 32 MiB, which is some
 * 400 jobs. A log that a long backup let grow is cut to `journal_size_limit`, bytes, and reading
 * the schema creates the log.
 */
const writerPragmas = `
  pragma journal_mode = wal;
  pragma synchronous = normal;
  pragma wal_autocheckpoint = 8000;
  pragma journal_size_limit = 67108864;
  pragma foreign_keys = on;
  select count(*) from sqlite_schema;`;

/** Time for others to close a file that only this process may use. */
const exclusiveTimeoutMs = 500;

/** A database whose transactions take turns. */
interface Access {
  readonly database: SqliteDatabase;
  readonly lock: () => Promise<() => void>;
}

function createSqliteDriver(path: string, { isExclusive = false, opened }: SqliteOptions): Driver {
  const writer = isExclusive ? openExclusively(path) : openWriter(path, opened);
  const log =
    path === ":memory:"
      ? undefined
      : openWriteAheadLog(path, { takeOver: () => checkpointInTurn(writer) });
  // Single statements must not see the older state of a reading transaction.
  const [reader, snapshot] =
    path === ":memory:" || isExclusive ? [] : [openReader(path), openReader(path)];
  const snapshots = snapshot && { database: snapshot, lock: createMutex() };
  const execute = async (query: CompiledQuery) => {
    if (reader && SelectQueryNode.is(query.query)) {
      return retryWhileBusy(() => reader.execute(query), busyDeadline());
    }
    const result = await executeInTurn(writer, query);
    await log?.flush();
    return result;
  };
  return {
    // What an earlier process committed last may not have been flushed.
    init: async () => log?.flush(),
    acquireConnection: async () => new SqliteConnection(execute),
    releaseConnection: async () => {},
    async beginTransaction(connection, { accessMode }) {
      const isReading = snapshots !== undefined && accessMode === "read only";
      const transaction = isReading
        ? await begin(snapshots, "begin")
        : await begin(writer, "begin immediate");
      asSqlite(connection).transaction = transaction;
    },
    async commitTransaction(connection) {
      const ended = endTransaction(asSqlite(connection), "commit");
      if (ended?.database === writer.database) await log?.flush();
    },
    async rollbackTransaction(connection) {
      endTransaction(asSqlite(connection), "rollback");
    },
    async destroy() {
      await log?.close();
      for (const database of [reader, snapshot, writer.database]) database?.close();
    },
  };
}

function openWriter(path: string, opened?: SqliteDatabase): Access {
  const database = opened ?? openSqliteDatabase(path, writerPragmas);
  return { database, lock: createMutex() };
}

function openExclusively(path: string): Access {
  const pragmas = `pragma locking_mode = exclusive; ${writerPragmas}`;
  return { database: openSqliteDatabase(path, pragmas, exclusiveTimeoutMs), lock: createMutex() };
}

async function executeInTurn(
  { database, lock }: Access,
  query: CompiledQuery,
): Promise<QueryResult<unknown>> {
  const deadline = busyDeadline();
  const end = await lock();
  try {
    return await retryWhileBusy(() => database.execute(query), deadline);
  } finally {
    end();
  }
}

/** @throws ServiceError unavailable while somebody reads from the log */
async function checkpointInTurn({ database, lock }: Access): Promise<void> {
  const end = await lock();
  try {
    database.checkpoint();
  } finally {
    end();
  }
}

function openReader(path: string): SqliteDatabase {
  return openSqliteDatabase(path, "pragma query_only = on");
}

async function begin(
  { database, lock }: Access,
  statement: "begin" | "begin immediate",
): Promise<Transaction> {
  const deadline = busyDeadline();
  const end = await lock();
  try {
    await retryWhileBusy(() => database.exec(statement), deadline);
  } catch (error) {
    end();
    throw error;
  }
  return { database, end };
}

/** A commit that fails is followed by a rollback. */
function endTransaction(
  connection: SqliteConnection,
  statement: "commit" | "rollback",
): Transaction | undefined {
  const { transaction } = connection;
  if (transaction === undefined) return undefined;
  const { database, end } = transaction;
  // SQLite itself has already rolled back where the disk was full.
  if (database.isTransaction) database.exec(statement);
  connection.transaction = undefined;
  end();
  return transaction;
}

/** The transaction of a connection, on one of the accesses. */
interface Transaction {
  readonly database: SqliteDatabase;
  readonly end: () => void;
}

class SqliteConnection implements DatabaseConnection {
  readonly #execute: (query: CompiledQuery) => Promise<QueryResult<unknown>>;
  transaction: Transaction | undefined;

  constructor(execute: (query: CompiledQuery) => Promise<QueryResult<unknown>>) {
    this.#execute = execute;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const result = this.transaction
      ? this.transaction.database.execute(query)
      : await this.#execute(query);
    return result as QueryResult<R>;
  }

  streamQuery(): never {
    throw new TypeError("No query is streamed");
  }
}

function asSqlite(connection: DatabaseConnection): SqliteConnection {
  if (connection instanceof SqliteConnection) return connection;
  throw new TypeError("The connection is another driver's");
}

/** What a database file has committed and not yet taken over from its write-ahead log. */
interface WriteAheadLog {
  /** Resolves when all that was committed before the call survives a power failure. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * SQLite itself would flush within each commit, and block the process' one thread meanwhile. Here
 * the flush runs beside it, and commits that come close together share one. After one that failed,
 * `takeOver` writes what the log has into the database and restarts the log.
 */
function openWriteAheadLog(
  database: string,
  options: { readonly takeOver: () => Promise<void> },
): WriteAheadLog {
  let file: Promise<FileHandle> | undefined;
  let hasFailed = false;
  const flush = groupCommit(async () => {
    // SQLite keeps the file for as long as the database is open.
    file ??= open(`${database}-wal`, "r+");
    const log = await file;
    // The kernel forgets what it could not write: another flush would succeed without it.
    if (hasFailed) await options.takeOver();
    hasFailed = true;
    await log.datasync().catch((cause: unknown) => {
      throw new ServiceError("unavailable", "The database's disk fails", { cause });
    });
    hasFailed = false;
  });
  return {
    flush,
    async close() {
      await (await file)?.close();
    },
  };
}
