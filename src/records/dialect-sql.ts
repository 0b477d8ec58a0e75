import { type Kysely, PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Schema } from "./schema.ts";

/** The value of a label of a row's document; null where it has none. */
export function batchLabel(db: Kysely<Schema>, key: string): RawBuilder<string | null> {
  return isPostgres(db)
    ? sql`document::json -> 'labels' ->> ${key}`
    : sql`json_extract(document, ${`$.labels."${key}"`})`;
}

/** Ids of a report's jobs, each a row with its `value`. */
export function reportJobs(db: Kysely<Schema>): RawBuilder<{ value: string }> {
  return isPostgres(db)
    ? sql`json_array_elements_text(github_reports.jobs::json)`
    : sql`json_each(github_reports.jobs)`;
}

function isPostgres(db: Kysely<Schema>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}
