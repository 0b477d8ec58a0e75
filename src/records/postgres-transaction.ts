import type { Pool, PoolClient } from "pg";
import { lockIds } from "./lock-ids.ts";
import { translatePostgresError } from "./translate-postgres-error.ts";

/** The transaction of a connection, on one of the server's. */
export interface PostgresTransaction {
  readonly client: PoolClient;
  readonly isWriting: boolean;
  /** Gives the server's connection back, or ends it. */
  readonly end: (isBroken: boolean) => void;
}

/** A transaction that begins when all others of the database have ended. */
export async function beginWriting(
  pool: Pool,
  takeTurn: () => Promise<() => void>,
): Promise<PostgresTransaction> {
  const endTurn = await takeTurn();
  const statements = `begin; select pg_advisory_xact_lock(${lockIds.writing}, 0)`;
  try {
    return await beginTransaction(pool, { statements, isWriting: true, onEnd: endTurn });
  } catch (error) {
    endTurn();
    throw error;
  }
}

/** A transaction that sees one state, whatever is written meanwhile. */
export async function beginReading(pool: Pool): Promise<PostgresTransaction> {
  const statements = "begin isolation level repeatable read read only";
  return beginTransaction(pool, { statements, isWriting: false, onEnd: () => {} });
}

interface Beginning {
  readonly statements: string;
  readonly isWriting: boolean;
  readonly onEnd: () => void;
}

async function beginTransaction(
  pool: Pool,
  { statements, isWriting, onEnd }: Beginning,
): Promise<PostgresTransaction> {
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
    return { client, isWriting, end };
  } catch (error) {
    throw translatePostgresError(error);
  }
}

export async function endPostgresTransaction(
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
export async function rollBack(transaction: PostgresTransaction): Promise<void> {
  await endPostgresTransaction(transaction, "rollback").catch(() => {});
}
