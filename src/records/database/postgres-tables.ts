/** Texts are ordered by their bytes, as in SQLite, whatever the database's own order is. */
export const createPostgresTables = [
  `create domain ordered_text as text collate "C"`,
  `create table jobs (
    id ordered_text primary key, project ordered_text not null, kind ordered_text not null,
    status ordered_text not null, batch_id ordered_text, model_name ordered_text not null,
    model_source ordered_text not null, target ordered_text not null,
    gates_failed integer not null, attempt integer not null, next_log_seq integer not null,
    target_document ordered_text not null, document ordered_text not null,
    resource ordered_text, repository_id ordered_text, commit_sha ordered_text,
    finished_at ordered_text, baseline_job_id ordered_text, evaluation_data ordered_text,
    has_log integer not null default 1, has_artifacts integer not null default 1,
    change_seq bigint not null default 0)`,
  `create table job_labels (
    job_id ordered_text not null references jobs (id), project ordered_text not null,
    key ordered_text not null, value ordered_text not null, primary key (job_id, key))`,
  `create table batches (
    id ordered_text primary key, project ordered_text not null, status ordered_text not null,
    suite ordered_text, fail_fast integer not null, document ordered_text not null,
    resource ordered_text, repository_id ordered_text, commit_sha ordered_text,
    change_seq bigint not null default 0)`,
  `create table log_lines (
    job_id ordered_text not null references jobs (id), seq integer not null,
    at ordered_text not null, stream ordered_text not null, text ordered_text not null,
    primary key (job_id, seq))`,
  `create table tokens (
    id ordered_text primary key, project ordered_text not null, name ordered_text not null,
    prefix ordered_text not null, hash ordered_text not null unique,
    scopes ordered_text not null, created_at ordered_text not null, expires_at ordered_text,
    last_used_at ordered_text, revoked_at ordered_text, policy ordered_text,
    repository ordered_text, workflow ordered_text)`,
  `create table idempotency_keys (
    project ordered_text not null, token_id ordered_text not null, key ordered_text not null,
    body_hash ordered_text not null, answer ordered_text, created_at ordered_text not null,
    primary key (project, token_id, key))`,
  `create table attempts (
    job_id ordered_text not null references jobs (id), attempt integer not null,
    secret_hash ordered_text, pod_uid ordered_text, step ordered_text, share integer,
    progress double precision not null, next_seq integer not null, pid integer,
    start_mark ordered_text, started_at ordered_text not null, ended_at ordered_text,
    primary key (job_id, attempt))`,
  `create table job_shares (
    job_id ordered_text not null references jobs (id), share integer not null,
    sha256 ordered_text not null, bytes bigint not null, primary key (job_id, share))`,
  `create table baselines (
    project ordered_text not null, suite ordered_text not null, model ordered_text not null,
    target ordered_text not null, branch ordered_text not null, sha ordered_text not null,
    job_id ordered_text not null, document ordered_text not null,
    primary key (project, suite, model, target, branch, sha))`,
  `create table spent_identities (
    issuer ordered_text not null, jti ordered_text not null, until double precision not null,
    primary key (issuer, jti))`,
  `create table github_reports (
    id ordered_text primary key, project ordered_text not null, settings ordered_text not null,
    request ordered_text not null, jobs ordered_text not null, round integer not null,
    check_run bigint, told ordered_text, is_accepted integer not null, is_open integer not null,
    is_acceptable integer not null default 0)`,
  `create table github_job_checks (
    job_id ordered_text primary key,
    report_id ordered_text not null references github_reports (id))`,
  "create table github_deliveries (id ordered_text primary key)",
  "create table projects (name ordered_text primary key, created_at ordered_text not null)",
  `create table project_blobs (
    project ordered_text not null, sha256 ordered_text not null,
    repository_id ordered_text not null, bytes bigint not null,
    created_at ordered_text not null, primary key (project, sha256, repository_id))`,
  `create table suites (
    project ordered_text not null, name ordered_text not null, repository_id ordered_text,
    primary key (project, name))`,
  `create table job_blobs (
    job_id ordered_text not null references jobs (id), sha256 ordered_text not null,
    bytes bigint not null default 0, primary key (job_id, sha256))`,
  `create table audit (
    id ordered_text primary key, project ordered_text not null, at ordered_text not null,
    action ordered_text not null, token_id ordered_text, token_name ordered_text not null,
    subject ordered_text not null)`,
  "create table project_usage (project ordered_text primary key, stored_bytes bigint not null)",
  `create table released_blobs (
    sha256 ordered_text primary key, released_at ordered_text not null)`,
  "create table deleted_resources (id ordered_text primary key, deleted_at ordered_text not null)",
  "create table change_counter (value bigint not null)",
  `create table job_outlines (
    job_id ordered_text primary key references jobs (id), sha256 ordered_text not null,
    bytes bigint not null)`,
];

export const createPostgresIndexes = [
  "create index jobs_by_id on jobs (project, id)",
  "create index jobs_by_status on jobs (project, status, id)",
  "create index jobs_by_kind on jobs (project, kind, id)",
  "create index jobs_by_target on jobs (project, target, id)",
  "create index jobs_by_model_name on jobs (project, model_name, id)",
  "create index jobs_by_model_source on jobs (project, model_source, id)",
  "create index jobs_by_batch on jobs (project, batch_id, id)",
  "create index jobs_by_batch_status on jobs (batch_id, status, gates_failed)",
  "create index jobs_unfinished on jobs (status, id)",
  "create index job_labels_by_value on job_labels (project, key, value, job_id)",
  "create index job_labels_by_key on job_labels (project, key, job_id)",
  "create index batches_by_id on batches (project, id)",
  "create index batches_by_status on batches (project, status, id)",
  "create index batches_by_suite on batches (project, suite, id)",
  "create index tokens_by_project on tokens (project, id)",
  "create index idempotency_keys_by_age on idempotency_keys (created_at)",
  "create index jobs_by_resource on jobs (status, id) where resource is not null",
  "create unique index attempts_by_pod on attempts (job_id, pod_uid)",
  "create index attempts_unended on attempts (job_id) where ended_at is null",
  "create index baselines_by_sha on baselines (project, suite, sha)",
  "create index baselines_by_branch on baselines (project, suite, model, target, branch, job_id)",
  "create index spent_identities_by_end on spent_identities (until)",
  "create index github_reports_open on github_reports (id) where is_open = 1",
  "create index github_reports_by_check_run on github_reports (check_run)",
  "create index github_job_checks_by_report on github_job_checks (report_id)",
  `create index jobs_by_repository
    on jobs (project, repository_id, id) where repository_id is not null`,
  `create index jobs_by_commit
    on jobs (project, repository_id, commit_sha, id) where repository_id is not null`,
  `create index batches_by_repository
    on batches (project, repository_id, id) where repository_id is not null`,
  "create index audit_by_project on audit (project, id)",
  "create index jobs_by_end on jobs (finished_at) where finished_at is not null",
  "create index jobs_with_log on jobs (finished_at) where finished_at is not null and has_log = 1",
  `create index jobs_with_artifacts
    on jobs (finished_at) where finished_at is not null and has_artifacts = 1`,
  `create index jobs_by_baseline
    on jobs (baseline_job_id, status) where baseline_job_id is not null`,
  `create index jobs_by_evaluation_data
    on jobs (project, evaluation_data, id) where evaluation_data is not null`,
  "create index baselines_by_job on baselines (job_id)",
  "create index job_blobs_by_hash on job_blobs (sha256)",
  "create index job_shares_by_hash on job_shares (sha256)",
  "create index project_blobs_by_hash on project_blobs (sha256)",
  `create index project_blobs_by_time
    on project_blobs (project, created_at, sha256, repository_id)`,
  "create index released_blobs_by_time on released_blobs (released_at)",
  "create index jobs_by_change on jobs (project, change_seq)",
  "create index batches_by_change on batches (project, change_seq)",
  "create index job_outlines_by_hash on job_outlines (sha256)",
];
