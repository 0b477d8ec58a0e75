import { type SQLInputValue, DatabaseSync, type StatementSync } from "node:sqlite";
import {
  CompiledQuery,
  type Dialect,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { ServiceError } from "../contract/errors.ts";

const busyTimeoutMs = 10_000;
/**
 * Statements kept prepared. The service has fewer different ones, apart from inserts of varying
 * length.
 */
const maxPreparedStatements = 200;
const sqliteFull = 13;

/** Kysely's SQLite dialect on the SQLite that is built into Node. */
export function sqliteDialect(path: string): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => createSqliteDriver(path),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

function createSqliteDriver(path: string): SqliteDriver {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  database.exec(
    "pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on;",
  );
  const driver = new SqliteDriver({ database: createCachingDatabase(database) });
  // A deferred transaction that reads first cannot wait for another process' write lock; an
  // immediate one can.
  driver.beginTransaction = async (connection) => {
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  };
  // SQLite itself has already rolled back where the disk was full.
  driver.rollbackTransaction = async (connection) => {
    if (database.isTransaction) await connection.executeQuery(CompiledQuery.raw("rollback"));
  };
  return driver;
}

function createCachingDatabase(database: DatabaseSync): SqliteDatabase {
  const prepare = createStatementCache(database);
  return {
    close: () => database.close(),
    prepare: (sql) => {
      const statement = translateFullDisk(() => prepare(sql));
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => translateFullDisk(() => statement.all(...parameters.map(toSqlInput))),
        run: (parameters) => translateFullDisk(() => statement.run(...parameters.map(toSqlInput))),
        iterate: (parameters) => statement.iterate(...parameters.map(toSqlInput)),
      };
    },
  };
}

/** Prepares statements, and keeps those that were used last. */
function createStatementCache(database: DatabaseSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return (sql) => {
    const known = prepared.get(sql);
    const statement = known ?? database.prepare(sql);
    if (known !== undefined) prepared.delete(sql);
    prepared.set(sql, statement);
    for (const oldest of prepared.keys()) {
      if (prepared.size <= maxPreparedStatements) break;
      prepared.delete(oldest);
    }
    return statement;
  };
}

function toSqlInput(parameter: unknown): SQLInputValue {
  if (parameter === null || typeof parameter === "string" || typeof parameter === "number") {
    return parameter;
  }
  throw new TypeError(`Cannot store a value of type "${typeof parameter}"`);
}

function translateFullDisk<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof Error && "errcode" in error && error.errcode === sqliteFull) {
      throw new ServiceError("storage_full", "The database cannot grow: its disk is full", {
        cause: error,
      });
    }
    throw error;
  }
}
