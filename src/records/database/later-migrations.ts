import { postgresDeletions, sqliteDeletions } from "./deletion-triggers.ts";
import {
  postgresWaitingDeliveries,
  sqliteWaitingDeliveries,
} from "./waiting-deliveries-triggers.ts";
import { postgresWaitingJobs, sqliteWaitingJobs } from "./waiting-jobs-triggers.ts";

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
    `create table webhooks (
      id ordered_text primary key, project ordered_text not null, url ordered_text not null,
      events ordered_text not null, description ordered_text not null,
      secret ordered_text not null, old_secret ordered_text, old_secret_until ordered_text,
      created_at ordered_text not null, last_success_at ordered_text, disabled_at ordered_text,
      disabled_reason ordered_text)`,
    "create index webhooks_by_project on webhooks (project, id)",
    `create table webhook_deliveries (
      id ordered_text primary key, webhook_id ordered_text not null references webhooks (id),
      type ordered_text not null, body ordered_text not null, status ordered_text not null,
      created_at ordered_text not null, attempts integer not null, last_attempt_at ordered_text,
      next_attempt_at ordered_text, response_status integer, error ordered_text)`,
    "create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id, id)",
    `create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at)
      where next_attempt_at is not null`,
    "create index webhook_deliveries_by_age on webhook_deliveries (created_at)",
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
  "0020-waiting-jobs": { sqlite: sqliteWaitingJobs, postgres: postgresWaitingJobs },
  // Filters of lists are decided within the index that a search goes along.
  "0021-lists": both([
    ...["kind", "status", "target", "model_name", "model_source", "batch", "batch_status"].map(
      (name) => `drop index jobs_by_${name}`,
    ),
    "create index jobs_by_kind on jobs (project, kind, id, status, target)",
    "create index jobs_by_status on jobs (project, status, id, kind, target)",
    "create index jobs_by_target on jobs (project, target, id, status, kind)",
    "create index jobs_by_model_name on jobs (project, model_name, id, status, kind, target)",
    "create index jobs_by_model_source on jobs (project, model_source, id, status, kind, target)",
    `create index jobs_by_batch on jobs (project, batch_id, id, status, kind, target)
      where batch_id is not null`,
    `create index jobs_by_batch_status on jobs (batch_id, status, gates_failed)
      where batch_id is not null`,
    // Lists of jobs from before take the fields that were added from their documents.
    "update jobs set summary = null where summary is not null",
  ]),
  "0022-waiting-deliveries": {
    sqlite: sqliteWaitingDeliveries,
    postgres: postgresWaitingDeliveries,
  },
  // Sessions from before there were people end: their owners sign in again.
  "0023-people": both([
    `create table people (
      id ordered_text primary key, name ordered_text not null, email ordered_text,
      issuer ordered_text, subject ordered_text, groups ordered_text not null,
      created_at ordered_text not null, unique (issuer, subject))`,
    `create table members (
      project ordered_text not null references projects (name), member ordered_text not null,
      issuer ordered_text, role ordered_text not null, created_at ordered_text not null,
      primary key (project, member))`,
    "create index members_by_member on members (member)",
    "drop table sign_in_links",
    `create table sign_in_links (
      hash ordered_text primary key, person_id ordered_text not null references people (id),
      expires_at ordered_text not null)`,
    "drop table sessions",
    `create table sessions (
      id ordered_text primary key, hash ordered_text not null unique,
      person_id ordered_text not null references people (id), project ordered_text not null,
      method ordered_text not null, browser ordered_text not null,
      created_at ordered_text not null, expires_at ordered_text not null,
      last_used_at ordered_text)`,
    "create index sessions_by_person on sessions (person_id, id)",
    "alter table tokens add column person_id ordered_text references people (id)",
    "alter table audit add column person_id ordered_text",
  ]),
  "0027-manifests": both([
    `create table manifest_files (
      project ordered_text not null, manifest ordered_text not null, position integer not null,
      path ordered_text not null, sha256 ordered_text not null, bytes bigint not null,
      primary key (project, manifest, position))`,
    "create index manifest_files_by_file on manifest_files (project, sha256)",
  ]),
  // Rows of lists have more figures than those that were kept.
  "0029-compared-summaries": both(["update jobs set summary = null"]),
  "0033-confirmed-people": both([
    "alter table people add column confirmed_at ordered_text",
    "update people set confirmed_at = created_at where issuer is not null",
  ]),
  // Baselines in rows of lists have more figures than those that were kept.
  "0034-compared-latencies": both(["update jobs set summary = null"]),
  // What roles people had who signed in before is not known.
  "0035-first-links": both([
    "alter table people add column had_role integer not null default 0",
    `update people set had_role = 1
      where id in (select person_id from audit where action = 'signIn')`,
    "alter table sign_in_links add column is_first integer not null default 0",
  ]),
  "0036-traces": both([
    "alter table jobs add column traceparent ordered_text",
    "alter table attempts add column stages ordered_text",
  ]),
  "0037-counted-manifests": both([
    "create index manifests_by_project on manifest_files (project, manifest) where position = 0",
  ]),
  "0038-disruptions": both(["alter table attempts add column disruption ordered_text"]),
  "0039-content-hash": both(["alter table github_reports rename column told to content_hash"]),
  "0040-log-segments": {
    sqlite: addSegments("blob"),
    postgres: addSegments("bytea"),
  },
  "0041-deletions": { sqlite: sqliteDeletions, postgres: postgresDeletions },
};

function addSegments(bytes: string): readonly string[] {
  return [
    `create table log_segments (
      job_id ordered_text not null references jobs (id), first_seq integer not null,
      last_seq integer not null, lines ${bytes} not null, primary key (job_id, first_seq))`,
    "alter table jobs add column has_log_lines integer not null default 1",
    `create index jobs_with_log_lines on jobs (finished_at)
      where finished_at is not null and has_log_lines = 1`,
  ];
}

function both(statements: readonly string[]): LaterMigration {
  return { sqlite: statements, postgres: statements };
}
