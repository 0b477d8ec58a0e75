import {
  type CompiledQuery,
  type Dialect,
  type Driver,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { createTurns } from "./create-turns.ts";
import { busyDeadline, retryWhileBusy } from "./retry-while-busy.ts";
import { asSqlite, SqliteConnection, type Transaction } from "./sqlite-connection.ts";
import { openSqliteDatabase, type SqliteDatabase } from "./sqlite-database.ts";

/**
 * Kysely's SQLite dialect on the SQLite that is built into Node. Reading waits neither for the
 * service's own transactions nor for another process that writes.
 */
export function sqliteDialect(path: string): Dialect {
  return {
    createAdapter: () => new ConcurrentSqliteAdapter(),
    createDriver: () => createSqliteDriver(path),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** Its driver orders statements itself, rather than one connection after the other. */
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/** A database whose transactions take turns. */
interface Access {
  readonly database: SqliteDatabase;
  readonly takeTurn: () => Promise<() => void>;
}

function createSqliteDriver(path: string): Driver {
  const writer = openWriter(path);
  // Statements alone must not see the state of a reading transaction, which is older.
  const [reader, snapshot] = path === ":memory:" ? [] : [openReader(path), openReader(path)];
  const snapshots = snapshot && { database: snapshot, takeTurn: createTurns() };
  const execute = async (query: CompiledQuery) => {
    if (reader && SelectQueryNode.is(query.query)) {
      return retryWhileBusy(() => reader.execute(query), busyDeadline());
    }
    const deadline = busyDeadline();
    const end = await writer.takeTurn();
    try {
      return await retryWhileBusy(() => writer.database.execute(query), deadline);
    } finally {
      end();
    }
  };
  return {
    init: async () => {},
    acquireConnection: async () => new SqliteConnection(execute),
    releaseConnection: async () => {},
    async beginTransaction(connection, { accessMode }) {
      const isReading = snapshots !== undefined && accessMode === "read only";
      const transaction = isReading
        ? await begin(snapshots, "begin")
        : await begin(writer, "begin immediate");
      asSqlite(connection).transaction = transaction;
    },
    commitTransaction: async (connection) => endTransaction(asSqlite(connection), "commit"),
    rollbackTransaction: async (connection) => endTransaction(asSqlite(connection), "rollback"),
    async destroy() {
      for (const database of [reader, snapshot, writer.database]) database?.close();
    },
  };
}

function openWriter(path: string): Access {
  const pragmas =
    "pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on;";
  return { database: openSqliteDatabase(path, pragmas), takeTurn: createTurns() };
}

function openReader(path: string): SqliteDatabase {
  return openSqliteDatabase(path, "pragma query_only = on");
}

async function begin(
  { database, takeTurn }: Access,
  statement: "begin" | "begin immediate",
): Promise<Transaction> {
  const deadline = busyDeadline();
  const end = await takeTurn();
  try {
    await retryWhileBusy(() => database.exec(statement), deadline);
  } catch (error) {
    end();
    throw error;
  }
  return { database, end };
}

/** A commit that fails is followed by a rollback. */
function endTransaction(connection: SqliteConnection, statement: "commit" | "rollback"): void {
  const { transaction } = connection;
  if (transaction === undefined) return;
  const { database, end } = transaction;
  // SQLite itself has already rolled back where the disk was full.
  if (database.isTransaction) database.exec(statement);
  connection.transaction = undefined;
  end();
}
