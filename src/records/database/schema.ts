import type { Generated } from "kysely";
import type { LogSegment } from "./log-segment.ts";

/**
 * Columns for both SQLite and PostgreSQL: times are ISO 8601 texts, booleans 0 or 1, documents JSON
 * texts.
 */
export interface Schema extends PeopleSchema {
  jobs: JobsTable;
  job_labels: JobLabelsTable;
  batches: BatchesTable;
  log_lines: LogLinesTable;
  log_segments: LogSegmentsTable;
  attempts: AttemptsTable;
  job_shares: JobSharesTable;
  job_outlines: JobOutlinesTable;
  job_blobs: JobBlobsTable;
  tokens: TokensTable;
  audit: AuditTable;
  spent_identities: SpentIdentitiesTable;
  baselines: BaselinesTable;
  idempotency_keys: IdempotencyKeysTable;
  github_reports: GithubReportsTable;
  github_job_checks: GithubJobChecksTable;
  github_deliveries: GithubDeliveriesTable;
  projects: ProjectsTable;
  project_blobs: ProjectBlobsTable;
  manifest_files: ManifestFilesTable;
  suites: SuitesTable;
  project_usage: ProjectUsageTable;
  waiting_jobs: WaitingJobsTable;
  released_blobs: ReleasedBlobsTable;
  deleted_resources: DeletedResourcesTable;
  change_counter: ChangeCounterTable;
  deletions: DeletionsTable;
  service_keys: ServiceKeysTable;
  webhooks: WebhooksTable;
  webhook_deliveries: WebhookDeliveriesTable;
}

interface JobsTable {
  id: string;
  project: string;
  kind: string;
  status: string;
  batch_id: string | null;
  model_name: string;
  model_source: string;
  target: string;
  gates_failed: number;
  /** Number of attempts so far. */
  attempt: number;
  next_log_seq: number;
  /** The target's definition when the job was created. */
  target_document: string;
  /** The job as the contract defines it; the columns before repeat what queries need. */
  document: string;
  /** The job as a row of lists, a JSON text; null until a job from before summaries changes. */
  summary: string | null;
  /** Reference to the job's custom resource, a JSON text; null if there is none. */
  resource: string | null;
  /** Of the workflow that the job comes from, as its commit is; null for all others. */
  repository_id: string | null;
  commit_sha: string | null;
  finished_at: string | null;
  /** The job whose result it is compared with. */
  baseline_job_id: string | null;
  /** Source of the evaluation data. */
  calibration_data: string | null;
  evaluation_data: string | null;
  /** Of the span of the request that created the job, as in W3C Trace Context. */
  traceparent: string | null;
  /** Whether log and artifacts are still there, 0 or 1. */
  has_log: Generated<number>;
  has_artifacts: Generated<number>;
  /** Whether a log may have lines that are not packed into segments, 0 or 1. */
  has_log_lines: Generated<number>;
  /** Number of the last change; triggers keep it. */
  change_seq: Generated<number>;
}

/** One row: the number of the last change of a job or batch. */
interface ChangeCounterTable {
  value: number;
}

/** Jobs and batches that were deleted, for followers of changes: kept for `limits.deletionDays`. */
interface DeletionsTable {
  /** Among the numbers of changes. */
  seq: number;
  kind: "job" | "batch";
  project: string;
  repository_id: string | null;
  commit_sha: string | null;
  /** The batch itself, or that of the job. */
  batch_id: string | null;
  /** What followers are sent of it. */
  document: string;
  deleted_at: string;
}

/** Secrets that the service makes for itself. */
interface ServiceKeysTable {
  name: string;
  /** Base64. */
  value: string;
}

/** Blobs of records that were deleted; one that no record names any more is deleted later. */
interface ReleasedBlobsTable {
  sha256: string;
  released_at: string;
}

/** Jobs and batches that were deleted, whose custom resources may still be there. */
interface DeletedResourcesTable {
  id: string;
  deleted_at: string;
}

interface JobLabelsTable {
  job_id: string;
  project: string;
  key: string;
  value: string;
}

interface BatchesTable {
  id: string;
  project: string;
  status: string;
  suite: string | null;
  fail_fast: number;
  /** The batch's summary as the contract defines it. */
  document: string;
  /** Reference to the batch's custom resource, a JSON text; null if there is none. */
  resource: string | null;
  /** Of the workflow that the batch comes from, as its commit is; null for all others. */
  repository_id: string | null;
  commit_sha: string | null;
  /** Number of the last change; triggers keep it. */
  change_seq: Generated<number>;
}

interface LogLinesTable {
  job_id: string;
  seq: number;
  at: string;
  stream: string;
  text: string;
}

interface LogSegmentsTable extends LogSegment {
  readonly job_id: string;
}

/** One row for each worker of a job. */
interface AttemptsTable {
  job_id: string;
  attempt: number;
  /** Of the secret that authenticates a local process; null for pods. */
  secret_hash: string | null;
  /** Null for processes on this machine. */
  pod_uid: string | null;
  /** The worker's part of the job; null where it does all of it. */
  step: string | null;
  share: number | null;
  /** Share of the worker's own work that is done. */
  progress: number;
  /** Sequence number of the worker's next event. */
  next_seq: number;
  pid: number | null;
  /** Start time of the process: pids are reused. */
  start_mark: string | null;
  started_at: string;
  ended_at: string | null;
  /** Number of the replica whose process it is; null for pods. */
  replica: number | null;
  /** The worker's stages that have ended, a JSON list; null until it reports. */
  stages: string | null;
  /** What ended it that is not the job's fault; null where that was something else. */
  disruption: string | null;
}

/** The weights that pods have optimized, for the pod that assembles the result. */
interface JobSharesTable {
  job_id: string;
  share: number;
  sha256: string;
  bytes: number;
}

/** What the shard step of a job stored of its model, for the pods of the later steps. */
interface JobOutlinesTable {
  job_id: string;
  sha256: string;
  bytes: number;
}

/** The blobs that workers of a job have stored. */
interface JobBlobsTable {
  job_id: string;
  sha256: string;
  bytes: number;
}

interface TokensTable {
  id: string;
  project: string;
  name: string;
  prefix: string;
  hash: string;
  scopes: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
  /** Trust policy that the token was issued under for an identity token; null for other tokens. */
  policy: string | null;
  /** The workflow that the token was given to, as the contract defines it; null for all others. */
  workflow: string | null;
  /** Who made the token, or the token that made it; null for tokens that no person made. */
  person_id: string | null;
  /** The token that was made in its place; null before. */
  replaced_by: string | null;
}

/** Who changed what; rows are only added. */
interface AuditTable {
  id: string;
  project: string;
  at: string;
  action: string;
  /** Null for commands on the service's machine. */
  token_id: string | null;
  token_name: string;
  /** Who was signed in; null for everything else. */
  person_id: string | null;
  subject: string;
}

/** Identity tokens that were exchanged, so that none is exchanged twice. */
interface SpentIdentitiesTable {
  issuer: string;
  jti: string;
  /**
   * Milliseconds since 1970, since the issuer chooses it: years of more than four digits have no
   * order as texts.
   */
  until: number;
}

/** What later jobs of the same suite, model and target are compared with. */
interface BaselinesTable {
  project: string;
  suite: string;
  model: string;
  target: string;
  branch: string;
  sha: string;
  /** Later jobs have greater ids. */
  job_id: string;
  /** The measured figures, as the contract defines them. */
  document: string;
}

interface IdempotencyKeysTable {
  project: string;
  token_id: string;
  key: string;
  body_hash: string;
  /** Encrypted with the caller's secret. */
  answer: string;
  created_at: string;
}

/** Reports on GitHub of batches that ask for one. */
interface GithubReportsTable {
  /** Of the batch that asked for the report. */
  id: string;
  project: string;
  /** Where to report and what, as the contract defines it. */
  settings: string;
  /** What is kept of the batch's request, to submit parts of it again. */
  request: string;
  /** Ids of the jobs that count, a JSON list in the order of models × targets. */
  jobs: string;
  /** Rises when jobs are submitted again after all had ended. */
  round: number;
  /** GitHub's number of the check run of this round; null until it is created. */
  check_run: number | null;
  /** Hash of what the check run shows in progress; null as soon as it is completed. */
  content_hash: string | null;
  is_accepted: number;
  /** Whether the results may become baselines by a button. */
  is_acceptable: number;
  /** Whether there is something left to write. */
  is_open: number;
}

/** Jobs that have check runs of their own. */
interface GithubJobChecksTable {
  job_id: string;
  report_id: string;
}

interface ProjectsTable {
  name: string;
  created_at: string;
}

/** Which uploaded files a project has: others are not there for it. */
interface ProjectBlobsTable {
  project: string;
  sha256: string;
  /** Of the workflow that uploaded the file; empty for all others. */
  repository_id: string;
  bytes: number;
  created_at: string;
}

/** What uploads that are manifests name: uploads of the same project. */
interface ManifestFilesTable {
  project: string;
  /** SHA-256 of the manifest. */
  manifest: string;
  /** Place in the manifest: the ONNX file has 0. */
  position: number;
  path: string;
  sha256: string;
  bytes: number;
}

/** Bytes of `project_blobs` and `job_blobs`; see `counters.ts`. */
interface ProjectUsageTable {
  project: string;
  stored_bytes: number;
}

/** How many jobs of each project are Pending, see `counters.ts`. */
interface WaitingJobsTable {
  project: string;
  jobs: number;
}

/** Whose the baselines of a suite are: of the first that recorded some. */
interface SuitesTable {
  project: string;
  name: string;
  repository_id: string | null;
}

/** GitHub's events that were received, so that none counts twice. */
interface GithubDeliveriesTable {
  id: string;
}

interface WebhooksTable {
  id: string;
  project: string;
  url: string;
  /** Filters of events, a JSON list. */
  events: string;
  description: string;
  secret: string;
  /** The secret before, which signs too until a time. */
  old_secret: string | null;
  old_secret_until: string | null;
  created_at: string;
  last_success_at: string | null;
  disabled_at: string | null;
  disabled_reason: string | null;
  /** Deliveries that have a next attempt; see `counters.ts`. */
  waiting_deliveries: Generated<number>;
  skipped_events: Generated<number>;
  last_skipped_at: string | null;
}

/** Events for webhooks, written in the transaction of the change. */
interface WebhookDeliveriesTable {
  id: string;
  webhook_id: string;
  type: string;
  /** The event, a JSON text. */
  body: string;
  status: string;
  created_at: string;
  attempts: number;
  last_attempt_at: string | null;
  /** Null if there is none to come. */
  next_attempt_at: string | null;
  response_status: number | null;
  error: string | null;
}

/** Tables of those who sign in; columns as in `Schema`. */
interface PeopleSchema {
  people: PeopleTable;
  members: MembersTable;
  sign_in_links: SignInLinksTable;
  sessions: SessionsTable;
}

/** Everybody who has signed in. */
interface PeopleTable {
  id: string;
  name: string;
  email: string | null;
  /** Single sign-on that the person is known from, with its name there; null for links. */
  issuer: string | null;
  subject: string | null;
  /** As of the last sign-in, a JSON list. */
  groups: string;
  created_at: string;
  /** Last sign-in at the issuer; null for links. */
  confirmed_at: string | null;
  /** 1 for who has ever signed in with a role in a project, else 0. */
  had_role: number;
}

/** Roles of people and of groups in projects. */
interface MembersTable {
  project: string;
  /** Id of a person, or `group:` and a name. */
  member: string;
  /** Whose group it is; null for a person. */
  issuer: string | null;
  role: string;
  created_at: string;
}

/** Links that sign a person in once; a row is deleted when its link is used. */
interface SignInLinksTable {
  /** SHA-256 of the link's secret. */
  hash: string;
  person_id: string;
  expires_at: string;
  /** 1 for those that count until somebody with a role has signed in, else 0. */
  is_first: number;
}

/** People who are signed in; a row is deleted when they sign out. */
interface SessionsTable {
  id: string;
  /** SHA-256 of the cookie's secret. */
  hash: string;
  person_id: string;
  /** Where requests of the session act. */
  project: string;
  method: string;
  browser: string;
  created_at: string;
  expires_at: string;
  last_used_at: string | null;
}
