import { type SQLInputValue, DatabaseSync, type StatementSync } from "node:sqlite";
import type { CompiledQuery, QueryResult } from "kysely";
import { type ErrorCode, ServiceError } from "../../contract/errors.ts";

/** Time for another process that opens the same file at the same moment. */
const openTimeoutMs = 5_000;
/**
 * Statements kept prepared. The service has fewer different ones, apart from inserts of varying
 * length.
 */
const maxPreparedStatements = 200;
/** By the lowest byte of SQLite's codes. */
const diskFailures: ReadonlyMap<number, readonly [ErrorCode, string]> = new Map([
  [10, ["unavailable", "The database's disk fails"]],
  // SQLite takes a page that cannot be read (EIO) for a damaged file.
  [11, ["unavailable", "The database cannot be read: its disk fails, or its file is damaged"]],
  [13, ["storage_full", "The database cannot grow: its disk is full"]],
]);

/** A connection to a database file. It fails at once where it would have to wait for a lock. */
export interface SqliteDatabase {
  exec(sql: string): void;
  execute(query: CompiledQuery): QueryResult<unknown>;
  /**
   * Takes the write-ahead log over into the database, flushes that, and restarts the log.
   * @throws ServiceError unavailable while somebody reads from the log
   */
  checkpoint(): void;
  /** Its content, with which another one can begin. */
  serialize(): Uint8Array;
  deserialize(content: Uint8Array): void;
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
    exec: (sql) => translateDiskError(() => database.exec(sql)),
    execute: (query) => translateDiskError(() => executeStatement(prepare(query.sql), query)),
    checkpoint: () => translateDiskError(() => checkpointLog(database)),
    serialize: () => database.serialize(),
    deserialize: (content) => database.deserialize(content),
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

function checkpointLog(database: DatabaseSync): void {
  const { busy } = database.prepare("pragma wal_checkpoint(truncate)").get() ?? {};
  if (busy === 0) return;
  const message = "The database's disk failed, and what it may have lost is not written again yet";
  throw new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
}

function toSqlInput(parameter: unknown): SQLInputValue {
  if (parameter === null || typeof parameter === "string" || typeof parameter === "number") {
    return parameter;
  }
  if (parameter instanceof Uint8Array) return parameter;
  throw new TypeError(`Cannot store a value of type "${typeof parameter}"`);
}

function translateDiskError<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
    const failure = diskFailures.get(code);
    throw failure === undefined ? error : new ServiceError(...failure, { cause: error });
  }
}
