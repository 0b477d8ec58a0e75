import { type SQLInputValue, DatabaseSync, type StatementSync } from "node:sqlite";
import type { CompiledQuery, QueryResult } from "kysely";
import { ServiceError } from "../contract/errors.ts";

/** Time for another process that opens the same file at the same moment. */
const openTimeoutMs = 5_000;
/**
 * Statements kept prepared. The service has fewer different ones, apart from inserts of varying
 * length.
 */
const maxPreparedStatements = 200;
const sqliteFull = 13;

/** A connection to a database file. It fails at once where it would have to wait for a lock. */
export interface SqliteDatabase {
  exec(sql: string): void;
  execute(query: CompiledQuery): QueryResult<unknown>;
  close(): void;
  readonly isTransaction: boolean;
}

export function openSqliteDatabase(
  path: string,
  pragmas: string,
  timeout = openTimeoutMs,
): SqliteDatabase {
  const database = new DatabaseSync(path, { timeout });
  database.exec(pragmas);
  // SQLite waits by blocking the process' one thread: the caller waits instead.
  database.exec("pragma busy_timeout = 0");
  const prepare = createStatementCache(database);
  return {
    exec: (sql) => translateFullDisk(() => database.exec(sql)),
    execute: (query) => translateFullDisk(() => executeStatement(prepare(query.sql), query)),
    close: () => database.close(),
    get isTransaction() {
      return database.isTransaction;
    },
  };
}

interface PreparedStatement {
  readonly statement: StatementSync;
  /** Asking for it takes as long as running a small query. */
  readonly hasRows: boolean;
}

function executeStatement(
  { statement, hasRows }: PreparedStatement,
  { parameters }: CompiledQuery,
): QueryResult<unknown> {
  const values = parameters.map(toSqlInput);
  if (hasRows) return { rows: statement.all(...values) };
  const { changes, lastInsertRowid } = statement.run(...values);
  return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
}

/** Prepares statements, and keeps those that were used last. */
function createStatementCache(database: DatabaseSync): (sql: string) => PreparedStatement {
  const prepared = new Map<string, PreparedStatement>();
  return (sql) => {
    const known = prepared.get(sql);
    const statement = known ?? prepareStatement(database, sql);
    if (known !== undefined) prepared.delete(sql);
    prepared.set(sql, statement);
    for (const oldest of prepared.keys()) {
      if (prepared.size <= maxPreparedStatements) break;
      prepared.delete(oldest);
    }
    return statement;
  };
}

function prepareStatement(database: DatabaseSync, sql: string): PreparedStatement {
  const statement = database.prepare(sql);
  return { statement, hasRows: statement.columns().length > 0 };
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
