import type { CompiledQuery, DatabaseConnection, QueryResult } from "kysely";
import type { PoolClient } from "pg";
import type { PostgresTransaction } from "./postgres-transaction.ts";
import { translatePostgresError } from "./translate-postgres-error.ts";

export class PostgresConnection implements DatabaseConnection {
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

export function asPostgres(connection: DatabaseConnection): PostgresConnection {
  if (connection instanceof PostgresConnection) return connection;
  throw new TypeError("The connection is another driver's");
}

/** @throws ServiceError unavailable, storage_full */
export async function executePostgres(
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
