import type { Job } from "../contract/jobs/job.ts";
import { type BatchSummary, batchSummary } from "../contract/jobs/page.ts";
import { type ChangeSearch, changesPerPage, isReached } from "./change-search.ts";
import { type DeletedRecord, forgetDeletions, listDeletions } from "./deletion-changes.ts";
import { documentHasLabel } from "./dialect-sql.ts";
import { hasLabels, parseLabel } from "./label-filter.ts";
import { parseJob } from "./parse-job.ts";
import { runReadTransaction, type Store, type WriteTransaction } from "./store.ts";

/** A job or batch as it is after its last change, or what is left of it. */
export type Change =
  | DeletedRecord
  | { readonly seq: number; readonly job: Job }
  | { readonly seq: number; readonly batch: BatchSummary };

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

    /** Forgets deletions after their time. */
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
  let jobs = trx.selectFrom("jobs").select(["change_seq", "document"]);
  jobs = jobs.where(isReached(search)).where("change_seq", ">", after);
  if (batch !== undefined) jobs = jobs.where("batch_id", "=", batch);
  if (label.length > 0) jobs = jobs.where(hasLabels(label.map(parseLabel)));
  const rows = await jobs.orderBy("change_seq").limit(changesPerPage).execute();
  return rows.map((row) => ({ seq: row.change_seq, job: parseJob(row.document) }));
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
  return rows.map((row) => {
    return { seq: row.change_seq, batch: batchSummary.parse(JSON.parse(row.document)) };
  });
}
