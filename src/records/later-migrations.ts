/** Statements that apply a migration, in the form of each database. */
interface LaterMigration {
  readonly sqlite: readonly string[];
  readonly postgres: readonly string[];
}

/**
 * The migrations since there are two databases. SQLite takes `ordered_text`, which is the domain of
 * all texts in PostgreSQL, for text too.
 */
export const laterMigrations: Readonly<Record<string, LaterMigration>> = {
  "0015-integration": both([
    "alter table jobs add column summary ordered_text",
    "create table service_keys (name ordered_text primary key, value ordered_text not null)",
  ]),
  "0016-sessions": both([
    `create table sign_in_links (
      hash ordered_text primary key, project ordered_text not null,
      user_name ordered_text not null, scopes ordered_text not null,
      expires_at ordered_text not null)`,
    `create table sessions (
      id ordered_text primary key, hash ordered_text not null unique,
      project ordered_text not null, user_name ordered_text not null,
      scopes ordered_text not null, browser ordered_text not null,
      created_at ordered_text not null, expires_at ordered_text not null,
      last_used_at ordered_text)`,
    "create index sessions_by_user on sessions (project, user_name, id)",
  ]),
  "0019-replicas": both([
    "alter table attempts add column replica integer",
    "alter table idempotency_keys add column replica integer",
  ]),
};

function both(statements: readonly string[]): LaterMigration {
  return { sqlite: statements, postgres: statements };
}
