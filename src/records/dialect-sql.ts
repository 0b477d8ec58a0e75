import { type Kysely, PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { LabelFilter } from "./label-filter.ts";
import type { Schema } from "./schema.ts";

/** Whether a row's document has a label. */
export function documentHasLabel(
  db: Kysely<Schema>,
  { key, value }: LabelFilter,
): RawBuilder<boolean> {
  const found = isPostgres(db)
    ? sql`document::json -> 'labels' ->> ${key}`
    : sql`json_extract(document, ${`$.labels."${key}"`})`;
  return value === undefined ? sql`${found} is not null` : sql`${found} = ${value}`;
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
