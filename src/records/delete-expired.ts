import { encodeIdTime } from "../contract/id.ts";
import { deleteBatchWithJobs } from "./deletion-records.ts";
import { deleteExpiredModels } from "./delete-expired-models.ts";
import { deleteEndedJobs } from "./delete-jobs.ts";
import { deleteLog } from "./delete-log.ts";
import { forgetBaselines } from "./forget-baselines.ts";
import { isJobNeeded } from "./is-job-needed.ts";
import { jobBlobTables } from "./list-referenced-blobs.ts";
import { parseJob } from "./parse-job.ts";
import { releaseJobBlobs } from "./release-blobs.ts";
import { type Expiry, findExpiry, type Retention } from "./retention.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

const pageSize = 100;
/** Longer than any custom resource outlives its job. */
const resourcesMs = 400 * 24 * 3_600_000;

/**
 * Deletes what is older than its time to live. What a job that has not ended, the newest baseline
 * of a branch or a report with something left to write needs is kept.
 */
export async function deleteExpired(store: Store, retention: Retention): Promise<void> {
  const now = store.now();
  const logs = findExpiry(retention, "logs", now);
  if (logs) await deleteExpiredLogs(store, logs);
  const artifacts = findExpiry(retention, "artifacts", now);
  if (artifacts) await deleteExpiredArtifacts(store, artifacts);
  const jobs = findExpiry(retention, "jobs", now);
  if (jobs) {
    await deleteExpiredJobs(store, jobs);
    await deleteExpiredBatches(store, jobs);
  }
  const models = findExpiry(retention, "models", now);
  if (models) await deleteExpiredModels(store, models);
  const oldest = new Date(now.getTime() - resourcesMs).toISOString();
  await store.db.deleteFrom("deleted_resources").where("deleted_at", "<", oldest).execute();
}

interface EndedJob {
  readonly id: string;
  readonly project: string;
  readonly finished_at: string;
}

/** Which jobs are asked for: those that still have a part, or those that no batch has. */
type KeptPart = "has_log" | "has_artifacts" | "outside batches";

/** Jobs that have expired, page by page, also while they are deleted. */
async function* listExpiredJobs(
  store: Store,
  expiry: Expiry,
  kept: KeptPart,
): AsyncGenerator<readonly EndedJob[]> {
  const ended = selectEndedJobs(store, expiry.latest, kept);
  for (let [id, finished_at] = ["", ""]; ;) {
    const page = await ended
      .where("finished_at", ">=", finished_at)
      .where((eb) => eb.or([eb("finished_at", ">", finished_at), eb("id", ">", id)]))
      .execute();
    yield page.filter((job) => hasExpired(expiry, job));
    const end = page.at(-1);
    if (end === undefined || page.length < pageSize) return;
    ({ id, finished_at } = end);
  }
}

function hasExpired(
  { findBefore }: Expiry,
  { project, finished_at }: Omit<EndedJob, "id">,
): boolean {
  const before = findBefore(project);
  return before !== undefined && finished_at < before.toISOString();
}

function selectEndedJobs({ db }: Store, before: Date, kept: KeptPart) {
  const ended = db
    .selectFrom("jobs")
    .select(["id", "project", "finished_at"])
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

async function deleteExpiredLogs(store: Store, expiry: Expiry): Promise<void> {
  for await (const jobs of listExpiredJobs(store, expiry, "has_log")) {
    for (const { id } of jobs) {
      await deleteLog(store, id);
      await store.db
        .updateTable("jobs")
        .set({ has_log: 0, has_log_lines: 0 })
        .where("id", "=", id)
        .execute();
    }
  }
}

async function deleteExpiredArtifacts(store: Store, expiry: Expiry): Promise<void> {
  for await (const jobs of listExpiredJobs(store, expiry, "has_artifacts")) {
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

async function deleteExpiredJobs(store: Store, expiry: Expiry): Promise<void> {
  for await (const jobs of listExpiredJobs(store, expiry, "outside batches")) {
    for (const { id } of jobs) {
      if (!(await isJobNeeded({ trx: store.db }, [id]))) await deleteEndedJobs(store, [id]);
    }
  }
}

async function deleteExpiredBatches(store: Store, expiry: Expiry): Promise<void> {
  const created = await store.db
    .selectFrom("batches")
    .select(["id", "project"])
    .where("id", "<", `batch-${encodeIdTime(expiry.latest)}`)
    .orderBy("id")
    .execute();
  for (const { id, project } of created) {
    const before = expiry.findBefore(project);
    if (before === undefined || id >= `batch-${encodeIdTime(before)}`) continue;
    const jobs = await store.db
      .selectFrom("jobs")
      .select(["id", "finished_at"])
      .where("batch_id", "=", id)
      .execute();
    const time = before.toISOString();
    if (jobs.some(({ finished_at: end }) => end === null || end >= time)) continue;
    const jobIds = jobs.map((job) => job.id);
    const isFree = await runWriteTransaction(store, (writing) => freeBatch(writing, id, jobIds));
    if (isFree) await deleteBatchWithJobs(store, id, jobIds);
  }
}

/** False where something needs the batch. */
async function freeBatch(
  writing: WriteTransaction,
  id: string,
  jobIds: readonly string[],
): Promise<boolean> {
  if (await isJobNeeded(writing, jobIds, id)) return false;
  await forgetBaselines(writing, jobIds);
  return true;
}
