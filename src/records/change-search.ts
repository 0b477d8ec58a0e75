import { sql } from "kysely";
import type { EventQuery } from "../contract/routes/event-routes.ts";
import type { Origin } from "../contract/people/principal.ts";

/** Whose changes are asked for, and which of them. */
export interface ChangeSearch extends Pick<EventQuery, "batch" | "label"> {
  readonly project: string;
  readonly origin: Partial<Origin>;
}

/** Changes of one search, of each kind. */
export const changesPerPage = 100;

/** The condition that jobs, batches and deletions alike have to meet. */
export function isReached({ project, origin }: Pick<ChangeSearch, "project" | "origin">) {
  const conditions = [sql<boolean>`project = ${project}`];
  const { repository, commit } = origin;
  if (repository !== undefined) conditions.push(sql<boolean>`repository_id = ${repository}`);
  if (commit !== undefined) conditions.push(sql<boolean>`commit_sha = ${commit}`);
  return sql<boolean>`${sql.join(conditions, sql` and `)}`;
}
