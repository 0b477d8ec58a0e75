import type { CompiledQuery, DatabaseConnection, QueryResult } from "kysely";
import type { SqliteDatabase } from "./sqlite-database.ts";

/** The transaction of a connection, on one of the accesses. */
export interface Transaction {
  readonly database: SqliteDatabase;
  readonly end: () => void;
}

export class SqliteConnection implements DatabaseConnection {
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

export function asSqlite(connection: DatabaseConnection): SqliteConnection {
  if (connection instanceof SqliteConnection) return connection;
  throw new TypeError("The connection is another driver's");
}
