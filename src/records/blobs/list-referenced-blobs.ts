import { DatabaseSync } from "node:sqlite";
import { UnusableDatabaseError } from "../database/postgres-errors.ts";

/** Tables that name blobs of a job, each in the column `sha256`. */
export const jobBlobTables = ["job_blobs", "job_shares", "job_outlines"] as const;
export const blobTables = ["project_blobs", ...jobBlobTables] as const;

/** Files of jobs with these hashes in a database file, as `NAME of job ID`, by their hash. */
export function nameArtifacts(path: string, hashes: readonly string[]): Map<string, string[]> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const query = database.prepare(`
      select artifact.value ->> 'name' as name, jobs.id as id, artifact.value ->> 'sha256' as sha256
      from jobs, json_each(jobs.document, '$.artifacts') as artifact
      where artifact.value ->> 'sha256' in (select value from json_each(?)) order by jobs.id`);
    const rows = query.all(JSON.stringify(hashes));
    const named = rows.map(({ name, id, sha256 }) => ({
      sha256: String(sha256),
      text: `${String(name)} of ${String(id)}`,
    }));
    const groups = Map.groupBy(named, ({ sha256 }) => sha256);
    return new Map([...groups].map(([sha256, all]) => [sha256, all.map(({ text }) => text)]));
  } finally {
    database.close();
  }
}

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
