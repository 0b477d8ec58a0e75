import { encodeIdTime } from "../contract/id.ts";
import { deleteBatchWithJobs } from "./deletion-records.ts";
import { deleteExpiredModels } from "./delete-expired-models.ts";
import { deleteEndedJobs, deleteLog } from "./delete-jobs.ts";
import { isJobNeeded } from "./is-job-needed.ts";
import { jobBlobTables } from "./list-referenced-blobs.ts";
import { parseJob } from "./parse-job.ts";
import { releaseJobBlobs } from "./release-blobs.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** How long things are kept, milliseconds; for good where it is undefined. */
export interface Retention {
  /** After a job's end: the job with all that it has. */
  readonly jobs?: number | undefined;
  readonly logs?: number | undefined;
  readonly artifacts?: number | undefined;
  /** After an upload was last named by a job, or was sent. */
  readonly models?: number | undefined;
}

const pageSize = 100;
/** Longer than any custom resource outlives its job. */
const resourcesMs = 400 * 24 * 3_600_000;

/**
 * Deletes what is older than its time to live. What a job that has not ended, the newest baseline
 * of a branch or a report with something left to write needs is kept.
 */
export async function deleteExpired(store: Store, retention: Retention): Promise<void> {
  const { logs, artifacts, jobs, models } = retention;
  if (logs !== undefined) await deleteExpiredLogs(store, timeBefore(store, logs));
  if (artifacts !== undefined) await deleteExpiredArtifacts(store, timeBefore(store, artifacts));
  if (jobs !== undefined) {
    await deleteExpiredJobs(store, timeBefore(store, jobs));
    await deleteExpiredBatches(store, timeBefore(store, jobs));
  }
  if (models !== undefined) await deleteExpiredModels(store, timeBefore(store, models));
  const oldest = timeBefore(store, resourcesMs).toISOString();
  await store.db.deleteFrom("deleted_resources").where("deleted_at", "<", oldest).execute();
}

function timeBefore({ now }: Store, ms: number): Date {
  return new Date(now().getTime() - ms);
}

interface EndedJob {
  readonly id: string;
  readonly finished_at: string;
}

/** Which jobs are asked for: those that still have a part, or those that no batch has. */
type KeptPart = "has_log" | "has_artifacts" | "outside batches";

/** Jobs that ended before a time, page by page, also while they are deleted. */
async function* listEndedJobs(
  store: Store,
  before: Date,
  kept: KeptPart,
): AsyncGenerator<readonly EndedJob[]> {
  const ended = selectEndedJobs(store, before, kept);
  for (let last: EndedJob = { id: "", finished_at: "" }; ;) {
    const { id, finished_at } = last;
    const page = await ended
      .where("finished_at", ">=", finished_at)
      .where((eb) => eb.or([eb("finished_at", ">", finished_at), eb("id", ">", id)]))
      .execute();
    yield page;
    const end = page.at(-1);
    if (end === undefined || page.length < pageSize) return;
    last = end;
  }
}

function selectEndedJobs({ db }: Store, before: Date, kept: KeptPart) {
  const ended = db
    .selectFrom("jobs")
    .select(["id", "finished_at"])
    .where("finished_at", "is not", null)
    .where("finished_at", "<", before.toISOString())
    .$narrowType<{ finished_at: string }>()
    .orderBy("finished_at")
    .orderBy("id")
    .limit(pageSize);
  return kept === "outside batches"
    ? ended.where("batch_id", "is", null)
    : ended.where(kept, "=", 1);
}

async function deleteExpiredLogs(store: Store, before: Date): Promise<void> {
  for await (const jobs of listEndedJobs(store, before, "has_log")) {
    for (const { id } of jobs) {
      await deleteLog(store, id);
      await store.db.updateTable("jobs").set({ has_log: 0 }).where("id", "=", id).execute();
    }
  }
}

async function deleteExpiredArtifacts(store: Store, before: Date): Promise<void> {
  for await (const jobs of listEndedJobs(store, before, "has_artifacts")) {
    for (const { id } of jobs) {
      await runWriteTransaction(store, (writing) => deleteArtifacts(writing, id));
    }
  }
}

async function deleteArtifacts(writing: WriteTransaction, id: string): Promise<void> {
  if (await isJobNeeded(writing, [id])) return;
  const { trx, effects } = writing;
  const row = await trx
    .selectFrom("jobs")
    .select("document")
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return;
  await releaseJobBlobs(writing, [id]);
  for (const table of jobBlobTables) {
    await trx.deleteFrom(table).where("job_id", "=", id).execute();
  }
  const document = JSON.stringify({ ...parseJob(row.document), artifacts: [] });
  await trx.updateTable("jobs").set({ document, has_artifacts: 0 }).where("id", "=", id).execute();
  effects.changed.add(id);
}

async function deleteExpiredJobs(store: Store, before: Date): Promise<void> {
  for await (const jobs of listEndedJobs(store, before, "outside batches")) {
    for (const { id } of jobs) {
      if (!(await isJobNeeded({ trx: store.db }, [id]))) await deleteEndedJobs(store, [id]);
    }
  }
}

async function deleteExpiredBatches(store: Store, before: Date): Promise<void> {
  const created = await store.db
    .selectFrom("batches")
    .select("id")
    .where("id", "<", `batch-${encodeIdTime(before)}`)
    .orderBy("id")
    .execute();
  for (const { id } of created) {
    const jobs = await store.db
      .selectFrom("jobs")
      .select(["id", "finished_at"])
      .where("batch_id", "=", id)
      .execute();
    const time = before.toISOString();
    if (jobs.some(({ finished_at: end }) => end === null || end >= time)) continue;
    const jobIds = jobs.map((job) => job.id);
    if (await isJobNeeded({ trx: store.db }, jobIds, id)) continue;
    await deleteBatchWithJobs(store, id, jobIds);
  }
}
