import type { Schema } from "./schema.ts";

/** Columns that identify the rows of each table; what refers to others comes after them. */
export const tableKeys = {
  projects: ["name"],
  people: ["id"],
  members: ["project", "member"],
  change_counter: ["value"],
  jobs: ["id"],
  job_labels: ["job_id", "key"],
  batches: ["id"],
  log_lines: ["job_id", "seq"],
  log_segments: ["job_id", "first_seq"],
  attempts: ["job_id", "attempt"],
  job_shares: ["job_id", "share"],
  job_outlines: ["job_id"],
  job_blobs: ["job_id", "sha256"],
  tokens: ["id"],
  audit: ["id"],
  spent_identities: ["issuer", "jti"],
  baselines: ["project", "suite", "model", "target", "branch", "sha"],
  idempotency_keys: ["project", "token_id", "key"],
  github_reports: ["id"],
  github_job_checks: ["job_id"],
  github_deliveries: ["id"],
  project_blobs: ["project", "sha256", "repository_id"],
  manifest_files: ["project", "manifest", "position"],
  suites: ["project", "name"],
  project_usage: ["project"],
  waiting_jobs: ["project"],
  released_blobs: ["sha256"],
  deleted_resources: ["id"],
  deletions: ["seq"],
  service_keys: ["name"],
  webhooks: ["id"],
  webhook_deliveries: ["id"],
  sign_in_links: ["hash"],
  sessions: ["id"],
  passkeys: ["id"],
} as const satisfies Readonly<Record<keyof Schema, readonly [string, ...string[]]>>;

/** Tables that have a row from the beginning. */
export const firstRowTables = ["projects", "change_counter"] as const;
