import { ServiceError } from "../../contract/errors.ts";

const diskFull = "53100";
const characterNotInRepertoire = "22021";
/**
 * Starts of codes that mean: try again soon. The server is being started, stopped or out of
 * connections, or is the standby of another one; a lock was not to be had; the connection was lost
 * or a limit of time cut it; the server's disk failed.
 */
const transientCodes = ["08", "25006", "25P03", "53300", "55P03", "57P", "57014", "58030", "E"];
/** Errors of the driver itself, which have no code. */
const lostConnection = /^Connection terminated|connection error|timeout/i;

/** The error as callers see it; one that is not transient stays as it is. */
export function translatePostgresError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ServiceError) return error;
  const code = "code" in error ? String(error.code) : undefined;
  if (code === diskFull) {
    const message = "The database cannot grow: its disk is full";
    return new ServiceError("storage_full", message, { cause: error });
  }
  if (code === characterNotInRepertoire) {
    const message = "A text has the character U+0000, which PostgreSQL does not store";
    return new ServiceError("malformed_request", message, { cause: error });
  }
  const isTransient =
    code === undefined
      ? lostConnection.test(error.message)
      : transientCodes.some((start) => code.startsWith(start));
  if (!isTransient) return error;
  const headers = { "retry-after": "1" };
  const message = "The service's database cannot be reached";
  return new ServiceError("unavailable", message, { cause: error, headers });
}

/** Why the records cannot be opened, for people: the message needs no stack. */
export class UnusableDatabaseError extends Error {
  override readonly name = "UnusableDatabaseError";
}
