import { sql } from "kysely";
import { summaryColumns, summaryText } from "./read-job-texts.ts";
import { limits } from "../../contract/limits.ts";
import type { Origin } from "../../contract/people/principal.ts";
import { deletion, type EventQuery } from "../../contract/routes/event-routes.ts";
import { documentHasLabel, hasLabels, parseLabel } from "../database/dialect-sql.ts";
import { runReadTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** A job or batch after its last change. */
export interface Change {
  readonly seq: number;
  readonly event: "job" | "batch" | "job.deleted" | "batch.deleted";
  /** Its summary, or what is left of it, as JSON. */
  readonly data: string;
}

interface ChangePage {
  readonly changes: readonly Change[];
  /** Number of the last change that the page takes into account. */
  readonly end: number;
  readonly isLast: boolean;
}

/**
 * Changes of jobs and batches, numbered in the order of their commits. Of a job the number of its
 * last change is kept, and no history.
 */
export function changeRecords(store: Store) {
  return {
    /** Number of the last change. */
    last: () => readCounter(store.db),

    listAfter: (search: ChangeSearch, after: number) =>
      runReadTransaction(store, (trx) => listChanges(trx, search, after)),

    purge: () => forgetDeletions(store),
  };
}

async function readCounter(db: Store["db"]): Promise<number> {
  const row = await db.selectFrom("change_counter").select("value").executeTakeFirstOrThrow();
  return row.value;
}

async function listChanges(
  trx: WriteTransaction["trx"],
  search: ChangeSearch,
  after: number,
): Promise<ChangePage> {
  const last = await readCounter(trx);
  const pages = [
    await listChangedJobs(trx, search, after),
    await listChangedBatches(trx, search, after),
    await listDeletions(trx, search, after),
  ];
  const ends = pages.flatMap((page) =>
    page.length < changesPerPage ? [] : (page.at(-1)?.seq ?? []),
  );
  const end = Math.min(last, ...ends);
  const changes = pages
    .flat()
    .filter(({ seq }) => seq <= end)
    .toSorted((one, other) => one.seq - other.seq);
  return { changes, end, isLast: end === last };
}

async function listChangedJobs(
  trx: WriteTransaction["trx"],
  { batch, label = [], ...search }: ChangeSearch,
  after: number,
): Promise<Change[]> {
  let jobs = trx.selectFrom("jobs").select("change_seq").select(summaryColumns);
  jobs = jobs.where(isReached(search)).where("change_seq", ">", after);
  if (batch !== undefined) jobs = jobs.where("batch_id", "=", batch);
  if (label.length > 0) jobs = jobs.where(hasLabels(label.map(parseLabel)));
  const rows = await jobs.orderBy("change_seq").limit(changesPerPage).execute();
  return rows.map((row) => ({ seq: row.change_seq, event: "job", data: summaryText(row) }));
}

async function listChangedBatches(
  trx: WriteTransaction["trx"],
  { batch, label = [], ...search }: ChangeSearch,
  after: number,
): Promise<Change[]> {
  let batches = trx.selectFrom("batches").select(["change_seq", "document"]);
  batches = batches.where(isReached(search)).where("change_seq", ">", after);
  if (batch !== undefined) batches = batches.where("id", "=", batch);
  for (const filter of label.map(parseLabel)) {
    batches = batches.where(documentHasLabel(trx, filter));
  }
  const rows = await batches.orderBy("change_seq").limit(changesPerPage).execute();
  return rows.map((row) => ({ seq: row.change_seq, event: "batch", data: row.document }));
}

const dayMs = 24 * 3_600_000;

/** What followers are sent of deletions. */
async function listDeletions(
  trx: WriteTransaction["trx"],
  { batch, label = [], ...search }: ChangeSearch,
  after: number,
): Promise<Change[]> {
  let deletions = trx.selectFrom("deletions").select(["seq", "kind", "document", "deleted_at"]);
  deletions = deletions.where(isReached(search)).where("seq", ">", after);
  if (batch !== undefined) deletions = deletions.where("batch_id", "=", batch);
  for (const filter of label.map(parseLabel)) {
    deletions = deletions.where(documentHasLabel(trx, filter));
  }
  const rows = await deletions.orderBy("seq").limit(changesPerPage).execute();
  return rows.map(({ seq, kind, document, deleted_at: deletedAt }) => {
    const left = deletion.parse({ ...JSON.parse(document), deletedAt });
    return { seq, event: `${kind}.deleted`, data: JSON.stringify(left) };
  });
}

/** Forgets deletions after their time. */
async function forgetDeletions({ db, now }: Store): Promise<void> {
  const oldest = new Date(now().getTime() - limits.deletionDays * dayMs).toISOString();
  await db.deleteFrom("deletions").where("deleted_at", "<", oldest).execute();
}

/** Whose changes are asked for, and which of them. */
export interface ChangeSearch extends Pick<EventQuery, "batch" | "label"> {
  readonly project: string;
  readonly origin: Partial<Origin>;
}

/** Changes of one search, of each kind. */
const changesPerPage = 100;

/** The condition that jobs, batches and deletions alike have to meet. */
function isReached({ project, origin }: Pick<ChangeSearch, "project" | "origin">) {
  const conditions = [sql<boolean>`project = ${project}`];
  const { repository, commit } = origin;
  if (repository !== undefined) conditions.push(sql<boolean>`repository_id = ${repository}`);
  if (commit !== undefined) conditions.push(sql<boolean>`commit_sha = ${commit}`);
  return sql<boolean>`${sql.join(conditions, sql` and `)}`;
}
