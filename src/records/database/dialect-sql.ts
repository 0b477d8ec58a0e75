import {
  type Expression,
  expressionBuilder,
  type Kysely,
  PostgresAdapter,
  type RawBuilder,
  sql,
  type SqlBool,
} from "kysely";
import type { Schema } from "./schema.ts";

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

/** The commit that a report is about. */
export function reportedCommit(db: Kysely<Schema>): RawBuilder<string> {
  return isPostgres(db)
    ? sql`github_reports.settings::json ->> 'sha'`
    : sql`github_reports.settings ->> 'sha'`;
}

function isPostgres(db: Kysely<Schema>): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Whether a column has a text, in any case. */
export function containsText(column: "jobs.model_name", text: string): RawBuilder<SqlBool> {
  const literal = text.toLowerCase().replaceAll(/[\\%_]/g, String.raw`\$&`);
  return sql`lower(${sql.ref(column)}) like ${`%${literal}%`} escape '\\'`;
}

/** A label that is asked for, with any value where it is undefined. */
export interface LabelFilter {
  readonly key: string;
  readonly value: string | undefined;
}

/** Parses `key` or `key=value`. */
export function parseLabel(text: string): LabelFilter {
  const separator = text.indexOf("=");
  return separator < 0
    ? { key: text, value: undefined }
    : { key: text.slice(0, separator), value: text.slice(separator + 1) };
}

export function hasLabels(filters: readonly LabelFilter[]): Expression<SqlBool> {
  const eb = expressionBuilder<Schema, "jobs">();
  const conditions = filters.map(({ key, value }) => {
    const label = eb
      .selectFrom("job_labels")
      .select("job_id")
      .whereRef("job_labels.job_id", "=", "jobs.id")
      .where("key", "=", key);
    return eb.exists(value === undefined ? label : label.where("value", "=", value));
  });
  return eb.and(conditions);
}
