import { DatabaseSync } from "node:sqlite";
import { UnusableDatabaseError } from "../database/postgres-errors.ts";

/** Tables that name blobs of a job, each in the column `sha256`. */
export const jobBlobTables = ["job_blobs", "job_shares", "job_outlines"] as const;
export const blobTables = ["project_blobs", ...jobBlobTables] as const;

/**
 * Hashes of all blobs that the records in a database file name.
 * @throws UnusableDatabaseError where the file is damaged
 */
export function listReferencedBlobs(path: string): string[] {
  const database = new DatabaseSync(path);
  try {
    const { integrity_check: problem } = database.prepare("pragma integrity_check(1)").get() ?? {};
    if (problem !== "ok") {
      throw new UnusableDatabaseError(`The database "${path}" is damaged: ${String(problem)}`);
    }
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
    const names = new Set(tables.map(({ name }) => name));
    // A copy that an earlier version made has not all of them.
    const present = blobTables.filter((table) => names.has(table));
    const selects = present.map((table) => `select sha256 from ${table}`);
    const rows = database.prepare(selects.join(" union ")).all();
    return rows.map(({ sha256 }) => String(sha256));
  } finally {
    database.close();
  }
}
