/** Columns as both SQLite and PostgreSQL hold them: times are ISO 8601 texts, booleans 0 or 1, documents JSON texts. */
export interface Schema {
  jobs: JobsTable;
  job_labels: JobLabelsTable;
  batches: BatchesTable;
  log_lines: LogLinesTable;
  attempts: AttemptsTable;
  tokens: TokensTable;
  idempotency_keys: IdempotencyKeysTable;
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
  /** Sequence number of the next event of the job's worker. */
  next_seq: number;
  next_log_seq: number;
  /** The target's whole definition when the job was made. */
  target_document: string;
  /** The job as the contract has it; the columns before repeat what queries need. */
  document: string;
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
}

interface LogLinesTable {
  job_id: string;
  seq: number;
  at: string;
  stream: string;
  text: string;
}

interface AttemptsTable {
  job_id: string;
  attempt: number;
  secret_hash: string;
  pid: number | null;
  /** Start time of the process, so that another one with the same pid is not taken for it. */
  start_mark: string | null;
  started_at: string;
  ended_at: string | null;
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
