import { createHash } from "node:crypto";
import { type Kysely, sql } from "kysely";
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
} as const satisfies Readonly<Record<keyof Schema, readonly [string, ...string[]]>>;

/** Tables that have a row from the beginning. */
export const firstRowTables = ["projects", "change_counter"] as const;

export type TableName = keyof Schema;
/** By the names of columns. */
export type Row = Readonly<Record<string, string | number | Uint8Array | null>>;

const rowsPerPage = 500;

export async function countRows(db: Kysely<Schema>, table: TableName): Promise<number> {
  const query = sql<{ rows: number }>`select count(*) as rows from ${sql.table(table)}`;
  const { rows } = await readOnly(db, query);
  return rows[0]?.rows ?? 0;
}

/** Rows in the order of their keys, at most `count`, in pages. */
export async function* readRows(
  db: Kysely<Schema>,
  table: TableName,
  { start, count }: { readonly start?: Row | undefined; readonly count: number },
): AsyncGenerator<readonly Row[]> {
  const keys = tableKeys[table];
  const columns = sql.join(keys.map((key) => sql.ref(key)));
  let last = start;
  for (let left = count; left > 0;) {
    const behind = last
      ? sql`where (${columns}) > (${sql.join(keys.map((key) => last?.[key]))})`
      : sql``;
    const limit = Math.min(left, rowsPerPage);
    const { rows } = await readOnly(
      db,
      sql<Row>`select * from ${sql.table(table)} ${behind} order by ${columns} limit ${limit}`,
    );
    last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    left -= rows.length;
  }
}

/** Hash of the first rows, which is the same in both kinds of databases, and the last of them. */
export async function hashRows(
  db: Kysely<Schema>,
  table: TableName,
  count: number,
): Promise<{ hash: string; last: Row | undefined }> {
  const hash = createHash("sha256");
  let last: Row | undefined;
  for await (const rows of readRows(db, table, { count })) {
    for (const row of rows) hash.update(JSON.stringify(sortColumns(row)));
    last = rows.at(-1);
  }
  return { hash: hash.digest("hex"), last };
}

/** The order of columns depends on when they were added. */
function sortColumns(row: Row): [string, string | number | null][] {
  return Object.keys(row)
    .toSorted()
    .map((name) => [name, comparable(row[name] ?? null)]);
}

function comparable(value: Row[string]): string | number | null {
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}

function readOnly<T>(db: Kysely<Schema>, query: ReturnType<typeof sql<T>>) {
  return db
    .transaction()
    .setAccessMode("read only")
    .execute((trx) => query.execute(trx));
}
