/** Columns as both SQLite and PostgreSQL hold them: times are ISO 8601 texts, booleans 0 or 1, documents JSON texts. */
export interface Schema {
  jobs: JobsTable;
  job_labels: JobLabelsTable;
  batches: BatchesTable;
  log_lines: LogLinesTable;
  attempts: AttemptsTable;
  job_shares: JobSharesTable;
  tokens: TokensTable;
  spent_identities: SpentIdentitiesTable;
  baselines: BaselinesTable;
  idempotency_keys: IdempotencyKeysTable;
  github_reports: GithubReportsTable;
  github_job_checks: GithubJobChecksTable;
  github_deliveries: GithubDeliveriesTable;
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
  /** Attempts begun. */
  attempt: number;
  next_log_seq: number;
  /** The target's whole definition when the job was made. */
  target_document: string;
  /** The job as the contract has it; the columns before repeat what queries need. */
  document: string;
  /** The custom resource that holds the job, a JSON text; null where there is none. */
  resource: string | null;
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
  /** The batch's summary as the contract has it. */
  document: string;
  /** The custom resource that holds the batch, a JSON text; null where there is none. */
  resource: string | null;
}

interface LogLinesTable {
  job_id: string;
  seq: number;
  at: string;
  stream: string;
  text: string;
}

/** One row for each worker of a job. */
interface AttemptsTable {
  job_id: string;
  attempt: number;
  /** What a process proves itself by; null for pods. */
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
  /** Start time of the process, so that another one with the same pid is not taken for it. */
  start_mark: string | null;
  started_at: string;
  ended_at: string | null;
}

/** The weights that pods have optimized, for the pod that assembles the result. */
interface JobSharesTable {
  job_id: string;
  share: number;
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
  /** Trust policy by which the token was given for an identity token; null where it was made. */
  policy: string | null;
  /** The only one that the token may have check runs written in; null where it may in all. */
  repository: string | null;
}

/** Identity tokens that were exchanged, so that none is exchanged twice. */
interface SpentIdentitiesTable {
  issuer: string;
  jti: string;
  /** Milliseconds since 1970, since the issuer chooses it: years of more than four digits have no order as texts. */
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
  /** What was measured, as the contract has it. */
  document: string;
}

interface IdempotencyKeysTable {
  project: string;
  token_id: string;
  key: string;
  body_hash: string;
  /** The answer once there is one. */
  answer: string | null;
  created_at: string;
}

/** What GitHub is told of batches that asked for it. */
interface GithubReportsTable {
  /** Of the batch that asked for the report. */
  id: string;
  project: string;
  /** Where and what to tell, as the contract has it. */
  settings: string;
  /** The batch's request, to submit parts of it anew. */
  request: string;
  /** Ids of the jobs that count, a JSON list in the order of models × targets. */
  jobs: string;
  /** Rises each time that jobs are submitted anew. */
  round: number;
  /** GitHub's number of the check run of this round; null until it is made. */
  check_run: number | null;
  /** Hash of what the check run shows. */
  told: string | null;
  is_accepted: number;
  /** Whether there is something left to tell. */
  is_open: number;
}

/** Jobs that have check runs of their own. */
interface GithubJobChecksTable {
  job_id: string;
  report_id: string;
}

/** GitHub's events that were received, so that none counts twice. */
interface GithubDeliveriesTable {
  id: string;
}
