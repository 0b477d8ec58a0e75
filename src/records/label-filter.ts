import { type Expression, expressionBuilder, type SqlBool } from "kysely";
import type { Schema } from "./schema.ts";

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

/** Whether a job has all the labels. */
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
