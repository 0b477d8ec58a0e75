import type { Migration } from "kysely/migration";
import { runStatements } from "./store.ts";

/** What the two databases write differently. SQLite takes every other word of PostgreSQL's here. */
interface Dialect {
  readonly bytes: "blob" | "bytea";
  /** Present time, as ISO 8601 with milliseconds. */
  readonly now: string;
  readonly before: readonly string[];
  readonly triggers: readonly string[];
}

/**
 * By name, applied in the order of their names. One that was released is never changed; in
 * PostgreSQL each works while replicas of the version before run.
 */
export type Migrations = Readonly<Record<string, Migration>>;

/** Tables of jobs, batches and their logs. Texts are ordered by their bytes in both databases. */
const jobTables = [
  `create table jobs (
    id ordered_text primary key, project ordered_text not null, kind ordered_text not null,
    status ordered_text not null, batch_id ordered_text, model_name ordered_text not null,
    model_source ordered_text not null, target ordered_text not null,
    gates_failed integer not null, attempt integer not null, next_log_seq integer not null,
    target_document ordered_text not null, document ordered_text not null, summary ordered_text,
    resource ordered_text, repository_id ordered_text, commit_sha ordered_text,
    finished_at ordered_text, baseline_job_id ordered_text, evaluation_data ordered_text,
    traceparent ordered_text, has_log integer not null default 1,
    has_log_lines integer not null default 1, has_artifacts integer not null default 1,
    change_seq bigint not null default 0)`,
  "create index jobs_by_id on jobs (project, id)",
  // Filters of lists are decided within the index that a search reads.
  "create index jobs_by_status on jobs (project, status, id, kind, target)",
  "create index jobs_by_kind on jobs (project, kind, id, status, target)",
  "create index jobs_by_target on jobs (project, target, id, status, kind)",
  "create index jobs_by_model_name on jobs (project, model_name, id, status, kind, target)",
  "create index jobs_by_model_source on jobs (project, model_source, id, status, kind, target)",
  `create index jobs_by_batch on jobs (project, batch_id, id, status, kind, target)
    where batch_id is not null`,
  `create index jobs_by_batch_status on jobs (batch_id, status, gates_failed)
    where batch_id is not null`,
  "create index jobs_unfinished on jobs (status, id)",
  "create index jobs_by_resource on jobs (status, id) where resource is not null",
  `create index jobs_by_repository on jobs (project, repository_id, id)
    where repository_id is not null`,
  `create index jobs_by_commit on jobs (project, repository_id, commit_sha, id)
    where repository_id is not null`,
  "create index jobs_by_end on jobs (finished_at) where finished_at is not null",
  "create index jobs_with_log on jobs (finished_at) where finished_at is not null and has_log = 1",
  `create index jobs_with_log_lines on jobs (finished_at)
    where finished_at is not null and has_log_lines = 1`,
  `create index jobs_with_artifacts on jobs (finished_at)
    where finished_at is not null and has_artifacts = 1`,
  `create index jobs_by_baseline on jobs (baseline_job_id, status)
    where baseline_job_id is not null`,
  `create index jobs_by_evaluation_data on jobs (project, evaluation_data, id)
    where evaluation_data is not null`,
  "create index jobs_by_change on jobs (project, change_seq)",
  `create table job_labels (
    job_id ordered_text not null references jobs (id), project ordered_text not null,
    key ordered_text not null, value ordered_text not null, primary key (job_id, key))`,
  "create index job_labels_by_value on job_labels (project, key, value, job_id)",
  "create index job_labels_by_key on job_labels (project, key, job_id)",
  `create table batches (
    id ordered_text primary key, project ordered_text not null, status ordered_text not null,
    suite ordered_text, fail_fast integer not null, document ordered_text not null,
    resource ordered_text, repository_id ordered_text, commit_sha ordered_text,
    change_seq bigint not null default 0)`,
  "create index batches_by_id on batches (project, id)",
  "create index batches_by_status on batches (project, status, id)",
  "create index batches_by_suite on batches (project, suite, id)",
  `create index batches_by_repository on batches (project, repository_id, id)
    where repository_id is not null`,
  "create index batches_by_change on batches (project, change_seq)",
  `create table attempts (
    job_id ordered_text not null references jobs (id), attempt integer not null,
    secret_hash ordered_text, pod_uid ordered_text, step ordered_text, share integer,
    progress double precision not null, next_seq integer not null, pid integer,
    start_mark ordered_text, replica integer, stages ordered_text, disruption ordered_text,
    started_at ordered_text not null, ended_at ordered_text, primary key (job_id, attempt))`,
  "create unique index attempts_by_pod on attempts (job_id, pod_uid)",
  "create index attempts_unended on attempts (job_id) where ended_at is null",
  `create table log_lines (
    job_id ordered_text not null references jobs (id), seq integer not null,
    at ordered_text not null, stream ordered_text not null, text ordered_text not null,
    primary key (job_id, seq))`,
  `create table idempotency_keys (
    project ordered_text not null, token_id ordered_text not null, key ordered_text not null,
    body_hash ordered_text not null, answer ordered_text not null,
    created_at ordered_text not null, primary key (project, token_id, key))`,
  "create index idempotency_keys_by_age on idempotency_keys (created_at)",
  `create table suites (
    project ordered_text not null, name ordered_text not null, repository_id ordered_text,
    primary key (project, name))`,
  `create table baselines (
    project ordered_text not null, suite ordered_text not null, model ordered_text not null,
    target ordered_text not null, branch ordered_text not null, sha ordered_text not null,
    job_id ordered_text not null, document ordered_text not null,
    primary key (project, suite, model, target, branch, sha))`,
  "create index baselines_by_sha on baselines (project, suite, sha)",
  "create index baselines_by_branch on baselines (project, suite, model, target, branch, job_id)",
  "create index baselines_by_job on baselines (job_id)",
  `create table github_reports (
    id ordered_text primary key, project ordered_text not null, settings ordered_text not null,
    request ordered_text not null, jobs ordered_text not null, round integer not null,
    check_run bigint, content_hash ordered_text, is_accepted integer not null,
    is_acceptable integer not null default 0, is_open integer not null)`,
  "create index github_reports_open on github_reports (id) where is_open = 1",
  "create index github_reports_by_check_run on github_reports (check_run)",
  `create table github_job_checks (
    job_id ordered_text primary key,
    report_id ordered_text not null references github_reports (id))`,
  "create index github_job_checks_by_report on github_job_checks (report_id)",
  "create table github_deliveries (id ordered_text primary key)",
];

/** Tables of what changed and what was deleted, which lists and events follow. */
const changeTables = [
  "create table change_counter (value bigint not null)",
  "insert into change_counter values (0)",
  `create table deletions (
    seq bigint primary key, kind ordered_text not null, project ordered_text not null,
    repository_id ordered_text, commit_sha ordered_text, batch_id ordered_text,
    document ordered_text not null, deleted_at ordered_text not null)`,
  "create index deletions_by_project on deletions (project, seq)",
  "create index deletions_by_age on deletions (deleted_at)",
  "create table deleted_resources (id ordered_text primary key, deleted_at ordered_text not null)",
  "create index deleted_resources_by_age on deleted_resources (deleted_at)",
  "create table waiting_jobs (project ordered_text primary key, jobs bigint not null)",
];

const blobTables = [
  `create table project_blobs (
    project ordered_text not null, sha256 ordered_text not null,
    repository_id ordered_text not null, bytes bigint not null,
    created_at ordered_text not null, primary key (project, sha256, repository_id))`,
  "create index project_blobs_by_hash on project_blobs (sha256)",
  `create index project_blobs_by_time
    on project_blobs (project, created_at, sha256, repository_id)`,
  `create table manifest_files (
    project ordered_text not null, manifest ordered_text not null, position integer not null,
    path ordered_text not null, sha256 ordered_text not null, bytes bigint not null,
    primary key (project, manifest, position))`,
  "create index manifest_files_by_file on manifest_files (project, sha256)",
  "create index manifests_by_project on manifest_files (project, manifest) where position = 0",
  `create table job_blobs (
    job_id ordered_text not null references jobs (id), sha256 ordered_text not null,
    bytes bigint not null default 0, primary key (job_id, sha256))`,
  "create index job_blobs_by_hash on job_blobs (sha256)",
  `create table job_shares (
    job_id ordered_text not null references jobs (id), share integer not null,
    sha256 ordered_text not null, bytes bigint not null, primary key (job_id, share))`,
  "create index job_shares_by_hash on job_shares (sha256)",
  `create table job_outlines (
    job_id ordered_text primary key references jobs (id), sha256 ordered_text not null,
    bytes bigint not null)`,
  "create index job_outlines_by_hash on job_outlines (sha256)",
  `create table released_blobs (
    sha256 ordered_text primary key, released_at ordered_text not null)`,
  "create index released_blobs_by_time on released_blobs (released_at)",
  "create table project_usage (project ordered_text primary key, stored_bytes bigint not null)",
];

const peopleTables = [
  "create table projects (name ordered_text primary key, created_at ordered_text not null)",
  `create table people (
    id ordered_text primary key, name ordered_text not null, email ordered_text,
    issuer ordered_text, subject ordered_text, groups ordered_text not null,
    created_at ordered_text not null, confirmed_at ordered_text,
    had_role integer not null default 0, unique (issuer, subject))`,
  `create table members (
    project ordered_text not null references projects (name), member ordered_text not null,
    issuer ordered_text, role ordered_text not null, created_at ordered_text not null,
    primary key (project, member))`,
  "create index members_by_member on members (member)",
  `create table sign_in_links (
    hash ordered_text primary key, person_id ordered_text not null references people (id),
    expires_at ordered_text not null, is_first integer not null default 0)`,
  `create table sessions (
    id ordered_text primary key, hash ordered_text not null unique,
    person_id ordered_text not null references people (id), project ordered_text not null,
    method ordered_text not null, browser ordered_text not null,
    created_at ordered_text not null, expires_at ordered_text not null,
    last_used_at ordered_text)`,
  "create index sessions_by_person on sessions (person_id, id)",
  `create table tokens (
    id ordered_text primary key, project ordered_text not null, name ordered_text not null,
    prefix ordered_text not null, hash ordered_text not null unique,
    scopes ordered_text not null, created_at ordered_text not null, expires_at ordered_text,
    last_used_at ordered_text, revoked_at ordered_text, policy ordered_text,
    repository ordered_text, workflow ordered_text,
    person_id ordered_text references people (id))`,
  "create index tokens_by_project on tokens (project, id)",
  `create table spent_identities (
    issuer ordered_text not null, jti ordered_text not null, until double precision not null,
    primary key (issuer, jti))`,
  "create index spent_identities_by_end on spent_identities (until)",
  `create table audit (
    id ordered_text primary key, project ordered_text not null, at ordered_text not null,
    action ordered_text not null, token_id ordered_text, token_name ordered_text not null,
    subject ordered_text not null, person_id ordered_text)`,
  "create index audit_by_project on audit (project, id)",
  "create table service_keys (name ordered_text primary key, value ordered_text not null)",
];

const webhookTables = [
  `create table webhooks (
    id ordered_text primary key, project ordered_text not null, url ordered_text not null,
    events ordered_text not null, description ordered_text not null,
    secret ordered_text not null, old_secret ordered_text, old_secret_until ordered_text,
    created_at ordered_text not null, last_success_at ordered_text, disabled_at ordered_text,
    disabled_reason ordered_text, waiting_deliveries integer not null default 0,
    skipped_events integer not null default 0, last_skipped_at ordered_text)`,
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
];

/** Tables whose rows are numbered by their last change, and what a deletion records. */
const followedTables = [
  { table: "jobs", kind: "job", batch: "old.batch_id", fields: "'batchId', old.batch_id, " },
  { table: "batches", kind: "batch", batch: "old.id", fields: "" },
] as const;

const sqliteNow = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
const postgresNow = `to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const sqlite: Dialect = {
  bytes: "blob",
  now: sqliteNow,
  before: [],
  triggers: [
    `create trigger audit_is_not_changed before update on audit
      begin select raise(abort, 'The audit is never changed'); end`,
    `create trigger audit_is_not_deleted before delete on audit
      begin select raise(abort, 'The audit is never deleted'); end`,
    ...followedTables.flatMap(({ table, kind, batch, fields }) => [
      ...["insert", "update of document"].map(
        (change) => `create trigger ${table}_after_${change.split(" ")[0]} after ${change}
          on ${table} begin
            update change_counter set value = value + 1;
            update ${table} set change_seq = (select value from change_counter)
              where id = new.id;
          end`,
      ),
      `create trigger ${table}_deletion after delete on ${table} begin
        update change_counter set value = value + 1;
        insert into deletions
          select value, '${kind}', old.project, old.repository_id, old.commit_sha, ${batch},
            json_object('id', old.id, ${fields}
              'labels', json_extract(old.document, '$.labels')),
            ${sqliteNow}
          from change_counter;
      end`,
    ]),
  ],
};

const postgres: Dialect = {
  bytes: "bytea",
  now: postgresNow,
  before: [`create domain ordered_text as text collate "C"`],
  triggers: [
    `create function refuse_audit_change() returns trigger language plpgsql as $$
      begin raise exception 'The audit is never %', tg_argv[0]; end $$`,
    `create trigger audit_is_not_changed before update on audit
      for each row execute function refuse_audit_change('changed')`,
    `create trigger audit_is_not_deleted before delete or truncate on audit
      for each statement execute function refuse_audit_change('deleted')`,
    `create function number_change() returns trigger language plpgsql as $$
      begin
        update change_counter set value = value + 1 returning value into new.change_seq;
        return new;
      end $$`,
    ...followedTables.flatMap(({ table, kind, batch, fields }) => [
      `create trigger ${table}_change before insert or update of document on ${table}
        for each row execute function number_change()`,
      `create function record_${kind}_deletion() returns trigger language plpgsql as $$
        declare number bigint;
        begin
          update change_counter set value = value + 1 returning value into number;
          insert into deletions values (
            number, '${kind}', old.project, old.repository_id, old.commit_sha, ${batch},
            json_build_object('id', old.id, ${fields}
              'labels', old.document::json -> 'labels')::text,
            ${postgresNow});
          return null;
        end $$`,
      `create trigger ${table}_deletion after delete on ${table}
        for each row execute function record_${kind}_deletion()`,
    ]),
  ],
};

/** Uploads that jobs calibrate on, which are kept for as long as those that they evaluate on. */
const calibrationColumn = [
  `alter table jobs add column calibration_data ordered_text`,
  `create index jobs_by_calibration_data on jobs (project, calibration_data, id)
    where calibration_data is not null`,
];

/** For fields that summaries of before lack: readers make them again. */
const forgottenSummaries = [`update jobs set summary = null where summary is not null`];

const successorColumn = ["alter table tokens add column replaced_by ordered_text"];

function createMigrations({ bytes, now, before, triggers }: Dialect): Migrations {
  const statements = [
    ...before,
    ...jobTables,
    `create table log_segments (
      job_id ordered_text not null references jobs (id), first_seq integer not null,
      last_seq integer not null, lines ${bytes} not null, primary key (job_id, first_seq))`,
    ...changeTables,
    ...blobTables,
    ...peopleTables,
    `insert into projects values ('default', ${now})`,
    ...webhookTables,
    ...triggers,
  ];
  return {
    "0001-schema": { up: (db) => runStatements(db, statements) },
    "0002-calibration-data": { up: (db) => runStatements(db, calibrationColumn) },
    "0003-summaries": { up: (db) => runStatements(db, forgottenSummaries) },
    "0004-token-successors": { up: (db) => runStatements(db, successorColumn) },
    "0005-accuracy-bases": { up: (db) => runStatements(db, forgottenSummaries) },
  };
}

export const sqliteMigrations = createMigrations(sqlite);
export const postgresMigrations = createMigrations(postgres);
