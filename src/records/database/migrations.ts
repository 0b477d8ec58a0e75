import type { Migration } from "kysely/migration";
import { laterMigrations } from "./later-migrations.ts";
import { runStatements } from "./store.ts";

/** Of SQLite, applied in the order of their names. One that was released is never changed. */
export const migrations: Readonly<Record<string, Migration>> = {
  "0001-jobs": { up: (db) => runStatements(db, createTables) },
  "0002-pods": { up: (db) => runStatements(db, addPods) },
  "0003-baselines": { up: (db) => runStatements(db, addBaselines) },
  "0004-reports": { up: (db) => runStatements(db, addReports) },
  "0005-latency-budget": { up: (db) => runStatements(db, replaceRuns) },
  "0006-tenants": { up: (db) => runStatements(db, addTenants) },
  "0007-job-blobs": { up: (db) => runStatements(db, addJobBlobs) },
  "0008-audit": { up: (db) => runStatements(db, addAudit) },
  "0009-stored-bytes": { up: (db) => runStatements(db, addStoredBytes) },
  "0010-old-suites": { up: (db) => runStatements(db, closeOldSuites) },
  "0011-whole-documents": { up: (db) => runStatements(db, completeDocuments) },
  "0012-retention": { up: (db) => runStatements(db, addRetention) },
  "0013-changes": { up: (db) => runStatements(db, addChanges) },
  "0014-outlines": { up: (db) => runStatements(db, addOutlines) },
  ...Object.fromEntries(
    Object.entries(laterMigrations).map(([name, { sqlite }]): [string, Migration] => [
      name,
      { up: (db) => runStatements(db, sqlite) },
    ]),
  ),
};

const createTables = [
  `create table jobs (
    id text primary key, project text not null, kind text not null, status text not null,
    batch_id text, model_name text not null, model_source text not null, target text not null,
    gates_failed integer not null, attempt integer not null, next_seq integer not null,
    next_log_seq integer not null, target_document text not null, document text not null)`,
  "create index jobs_by_id on jobs (project, id)",
  "create index jobs_by_status on jobs (project, status, id)",
  "create index jobs_by_kind on jobs (project, kind, id)",
  "create index jobs_by_target on jobs (project, target, id)",
  "create index jobs_by_model_name on jobs (project, model_name, id)",
  "create index jobs_by_model_source on jobs (project, model_source, id)",
  "create index jobs_by_batch on jobs (project, batch_id, id)",
  "create index jobs_by_batch_status on jobs (batch_id, status, gates_failed)",
  "create index jobs_unfinished on jobs (status, id)",
  `create table job_labels (
    job_id text not null references jobs (id), project text not null, key text not null,
    value text not null, primary key (job_id, key))`,
  "create index job_labels_by_value on job_labels (project, key, value, job_id)",
  "create index job_labels_by_key on job_labels (project, key, job_id)",
  `create table batches (
    id text primary key, project text not null, status text not null, suite text,
    fail_fast integer not null, document text not null)`,
  "create index batches_by_id on batches (project, id)",
  "create index batches_by_status on batches (project, status, id)",
  "create index batches_by_suite on batches (project, suite, id)",
  `create table log_lines (
    job_id text not null references jobs (id), seq integer not null, at text not null,
    stream text not null, text text not null, primary key (job_id, seq))`,
  `create table attempts (
    job_id text not null references jobs (id), attempt integer not null,
    secret_hash text not null, pid integer, start_mark text, started_at text not null,
    ended_at text, primary key (job_id, attempt))`,
  `create table tokens (
    id text primary key, project text not null, name text not null, prefix text not null,
    hash text not null unique, scopes text not null, created_at text not null, expires_at text,
    last_used_at text, revoked_at text)`,
  "create index tokens_by_project on tokens (project, id)",
  `create table idempotency_keys (
    project text not null, token_id text not null, key text not null, body_hash text not null,
    answer text, created_at text not null, primary key (project, token_id, key))`,
  "create index idempotency_keys_by_age on idempotency_keys (created_at)",
];

const addPods = [
  "alter table jobs drop column next_seq",
  "alter table jobs add column resource text",
  "alter table batches add column resource text",
  "create index jobs_by_resource on jobs (status, id) where resource is not null",
  `create table new_attempts (
    job_id text not null references jobs (id), attempt integer not null, secret_hash text,
    pod_uid text, step text, share integer, progress real not null, next_seq integer not null,
    pid integer, start_mark text, started_at text not null, ended_at text,
    primary key (job_id, attempt))`,
  `insert into new_attempts (
      job_id, attempt, secret_hash, progress, next_seq, pid, start_mark, started_at, ended_at)
    select job_id, attempt, secret_hash, 0, 1, pid, start_mark, started_at, ended_at
    from attempts`,
  "drop table attempts",
  "alter table new_attempts rename to attempts",
  "create unique index attempts_by_pod on attempts (job_id, pod_uid)",
  "create index attempts_unended on attempts (job_id) where ended_at is null",
  `create table job_shares (
    job_id text not null references jobs (id), share integer not null, sha256 text not null,
    bytes integer not null, primary key (job_id, share))`,
];

const addBaselines = [
  `create table baselines (
    project text not null, suite text not null, model text not null, target text not null,
    branch text not null, sha text not null, job_id text not null, document text not null,
    primary key (project, suite, model, target, branch, sha))`,
  "create index baselines_by_sha on baselines (project, suite, sha)",
  "create index baselines_by_branch on baselines (project, suite, model, target, branch, job_id)",
  "alter table tokens add column policy text",
  `create table spent_identities (
    issuer text not null, jti text not null, until double precision not null,
    primary key (issuer, jti))`,
  "create index spent_identities_by_end on spent_identities (until)",
];

const addReports = [
  `create table github_reports (
    id text primary key, project text not null, settings text not null, request text not null,
    jobs text not null, round integer not null, check_run bigint, told text,
    is_accepted integer not null, is_open integer not null)`,
  "create index github_reports_open on github_reports (id) where is_open = 1",
  "create index github_reports_by_check_run on github_reports (check_run)",
  `create table github_job_checks (
    job_id text primary key, report_id text not null references github_reports (id))`,
  "create index github_job_checks_by_report on github_job_checks (report_id)",
  "create table github_deliveries (id text primary key)",
  "alter table tokens add column repository text",
];

/** Recipes have a budget in place of numbers of runs, and limits no noise of latency. */
const replaceRuns = [
  `update jobs set document = json_remove(
      json_set(document, '$.recipe.evaluation.latencyBudgetSeconds', 20),
      '$.recipe.evaluation.runs', '$.recipe.evaluation.warmup', '$.gateLimits.latencyNoiseMs')
    where json_extract(document, '$.recipe.evaluation') is not null`,
  `update jobs set target_document = json_remove(target_document,
      '$.recipe.evaluation.runs', '$.recipe.evaluation.warmup')`,
  `update github_reports set request = json_remove(request,
      '$.recipe.evaluation.runs', '$.recipe.evaluation.warmup', '$.gates.latencyNoiseMs')`,
];

/**
 * Uploads that no job named are forgotten, so that their owners upload them again. Tokens of
 * workflows, which live for an hour, do not say which repository and commit they belong to.
 */
const addTenants = [
  "create table projects (name text primary key, created_at text not null)",
  "insert into projects values ('default', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
  "alter table jobs add column repository_id text",
  "alter table jobs add column commit_sha text",
  `create index jobs_by_repository on jobs (project, repository_id, id)
    where repository_id is not null`,
  `create index jobs_by_commit on jobs (project, repository_id, commit_sha, id)
    where repository_id is not null`,
  "alter table batches add column repository_id text",
  "alter table batches add column commit_sha text",
  `create index batches_by_repository on batches (project, repository_id, id)
    where repository_id is not null`,
  "alter table tokens add column workflow text",
  `update tokens set revoked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    where policy is not null and revoked_at is null`,
  "alter table github_reports add column is_acceptable integer not null default 0",
  `create table project_blobs (
    project text not null, sha256 text not null, repository_id text not null,
    bytes bigint not null, created_at text not null,
    primary key (project, sha256, repository_id))`,
  `insert into project_blobs
    select project, substr(model_source, 15), '',
      max(coalesce(json_extract(document, '$.model.bytes'), 0)),
      min(json_extract(document, '$.createdAt'))
    from jobs where model_source like 'upload:sha256:%' group by project, model_source`,
  `insert or ignore into project_blobs
    select project, substr(json_extract(document, '$.recipe.evaluation.data'), 15), '', 0,
      json_extract(document, '$.createdAt')
    from jobs where json_extract(document, '$.recipe.evaluation.data') like 'upload:sha256:%'`,
  `create table suites (
    project text not null, name text not null, repository_id text, primary key (project, name))`,
];

const addJobBlobs = [
  `create table job_blobs (
    job_id text not null references jobs (id), sha256 text not null,
    primary key (job_id, sha256))`,
];

const addAudit = [
  `create table audit (
    id text primary key, project text not null, at text not null, action text not null,
    token_id text, token_name text not null, subject text not null)`,
  "create index audit_by_project on audit (project, id)",
  `create trigger audit_is_not_changed before update on audit
    begin select raise(abort, 'The audit is never changed'); end`,
  `create trigger audit_is_not_deleted before delete on audit
    begin select raise(abort, 'The audit is never deleted'); end`,
];

/** Fields that came after the first jobs: lists pass documents on as they are. */
const completeDocuments = [
  `update jobs set document = json_insert(document, '$.dryRun', json('false'),
    '$.baseline', json('null'))`,
  `update jobs set document = json_insert(document, '$.telemetry.size.predicted', json('false'))
    where json_extract(document, '$.telemetry.size') is not null`,
  `update jobs set document = json_set(document, '$.gates', (
      select json_group_array(json(
        json_insert(value, '$.baseline', json('null'), '$.level', 'fail')))
      from json_each(document, '$.gates')))
    where json_array_length(document, '$.gates') > 0`,
];

const addOutlines = [
  `create table job_outlines (
    job_id text primary key references jobs (id), sha256 text not null, bytes bigint not null)`,
  "create index job_outlines_by_hash on job_outlines (sha256)",
];

function countBytes(table: string, row: "new" | "old", project: string): string {
  const [event, sign] = row === "new" ? ["insert", ""] : ["delete", "-"];
  return `create trigger ${table}_${event} after ${event} on ${table} begin
    insert into project_usage values (${project}, ${sign}${row}.bytes)
      on conflict (project) do update set stored_bytes = stored_bytes + excluded.stored_bytes;
    end`;
}

const ownerOf = (row: string) => `(select project from jobs where id = ${row}.job_id)`;

/** Triggers count, so that every query that adds or deletes files does. */
const addStoredBytes = [
  "alter table job_blobs add column bytes bigint not null default 0",
  `insert or ignore into job_blobs
    select jobs.id, json_extract(value, '$.sha256'), 0
    from jobs, json_each(document, '$.artifacts')`,
  `update job_blobs set bytes = coalesce((
      select json_extract(value, '$.bytes') from jobs, json_each(document, '$.artifacts')
      where jobs.id = job_blobs.job_id and json_extract(value, '$.sha256') = job_blobs.sha256), 0)`,
  "create table project_usage (project text primary key, stored_bytes bigint not null)",
  `insert into project_usage
    select project, sum(bytes) from (
      select project, bytes from project_blobs union all
      select project, bytes from job_blobs join jobs on jobs.id = job_blobs.job_id)
    group by project`,
  countBytes("project_blobs", "new", "new.project"),
  countBytes("project_blobs", "old", "old.project"),
  countBytes("job_blobs", "new", ownerOf("new")),
  countBytes("job_blobs", "old", ownerOf("old")),
];

/**
 * Suites that were recorded before repositories owned them belong to none: a workflow that records
 * next must not get the baselines of another repository.
 */
const closeOldSuites = [
  "insert or ignore into suites select distinct project, suite, null from baselines",
];

const addRetention = [
  "alter table jobs add column finished_at text",
  "alter table jobs add column baseline_job_id text",
  "alter table jobs add column evaluation_data text",
  "alter table jobs add column has_log integer not null default 1",
  "alter table jobs add column has_artifacts integer not null default 1",
  `update jobs set finished_at = json_extract(document, '$.finishedAt'),
    baseline_job_id = json_extract(document, '$.baseline.jobId'),
    evaluation_data = json_extract(document, '$.recipe.evaluation.data')`,
  `create index jobs_by_end on jobs (finished_at) where finished_at is not null`,
  `create index jobs_with_log on jobs (finished_at)
    where finished_at is not null and has_log = 1`,
  `create index jobs_with_artifacts on jobs (finished_at)
    where finished_at is not null and has_artifacts = 1`,
  `create index jobs_by_baseline on jobs (baseline_job_id, status)
    where baseline_job_id is not null`,
  `create index jobs_by_evaluation_data on jobs (project, evaluation_data, id)
    where evaluation_data is not null`,
  "create index baselines_by_job on baselines (job_id)",
  "create index job_blobs_by_hash on job_blobs (sha256)",
  "create index job_shares_by_hash on job_shares (sha256)",
  "create index project_blobs_by_hash on project_blobs (sha256)",
  `create index project_blobs_by_time
    on project_blobs (project, created_at, sha256, repository_id)`,
  "create table released_blobs (sha256 text primary key, released_at text not null)",
  "create index released_blobs_by_time on released_blobs (released_at)",
  "create table deleted_resources (id text primary key, deleted_at text not null)",
];

/** Jobs and batches are numbered by their last change; those from before have none. */
const addChanges = [
  "create table change_counter (value bigint not null)",
  "insert into change_counter values (0)",
  ...["jobs", "batches"].flatMap((table) => [
    `alter table ${table} add column change_seq bigint not null default 0`,
    `create index ${table}_by_change on ${table} (project, change_seq)`,
    ...["insert", "update of document"].map(
      (change) => `create trigger ${table}_after_${change.split(" ")[0]} after ${change} on ${table}
        begin
          update change_counter set value = value + 1;
          update ${table} set change_seq = (select value from change_counter) where id = new.id;
        end`,
    ),
  ]),
];
