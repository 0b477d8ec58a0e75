import { type PoolConfig, types } from "pg";

/** Time for a connection to be made or, of those for reading, to become free. */
const connectMs = 10_000;
/** Time for a statement. */
const statementMs = 30_000;
/** Time that the server gives a statement and the network an answer. */
const answerMs = statementMs + 10_000;

/** Numbers that PostgreSQL's driver would give as texts: counts, sums, columns of 8 bytes. */
const numberTypes: ReadonlySet<number> = new Set([types.builtins.INT8, types.builtins.NUMERIC]);

/** What all connections of the service have in common. */
export function postgresConnectionOptions(url: string): PoolConfig {
  return {
    connectionString: url,
    application_name: "model-optimization-service",
    connectionTimeoutMillis: connectMs,
    statement_timeout: statementMs,
    query_timeout: answerMs,
    keepAlive: true,
    types: {
      getTypeParser: (type, format) =>
        numberTypes.has(type) ? Number : types.getTypeParser(type, format),
    },
  };
}
