import { forgetBaselines } from "./baseline-records.ts";
import { deleteEndedJobs, findOpenReport, isJobNeeded } from "./delete-jobs.ts";
import { deleteLog } from "./log-records.ts";
import { deleteBatchWithJobs } from "./deletion-records.ts";
import { parseJob } from "./find-record.ts";
import { type Expiry, findExpiry, type Retention } from "./retention.ts";
import { encodeIdTime } from "../../contract/id.ts";
import { uploadSource } from "../../contract/models/model-source.ts";
import { selectManifestsWith } from "../blobs/manifest-records.ts";
import { findJobThatUses, forgetUploads, uploadColumns } from "../blobs/model-records.ts";
import { deleteJobBlobs } from "../blobs/release-blobs.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

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
  if (await isJobNeeded(writing.trx, [id])) return;
  const { trx, effects } = writing;
  const row = await trx
    .selectFrom("jobs")
    .select("document")
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return;
  await deleteJobBlobs(writing, [id]);
  const document = JSON.stringify({ ...parseJob(row.document), artifacts: [] });
  await trx.updateTable("jobs").set({ document, has_artifacts: 0 }).where("id", "=", id).execute();
  effects.changed.add(id);
}

async function deleteExpiredJobs(store: Store, expiry: Expiry): Promise<void> {
  for await (const jobs of listExpiredJobs(store, expiry, "outside batches")) {
    for (const { id } of jobs) {
      if (!(await isJobNeeded(store.db, [id]))) await deleteEndedJobs(store, [id]);
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
  if (await isJobNeeded(writing.trx, jobIds, id)) return false;
  await forgetBaselines(writing, jobIds);
  return true;
}

/**
 * Forgets uploads from before their project's time that no job has named since then. What a
 * manifest names goes after the manifest.
 */
async function deleteExpiredModels(store: Store, expiry: Expiry): Promise<void> {
  const uploads = await store.db
    .selectFrom("project_blobs")
    .select((eb) => ["project", "sha256", eb.fn.max("created_at").as("sent_at")])
    .groupBy(["project", "sha256"])
    .having((eb) => eb.fn.max("created_at"), "<", expiry.latest.toISOString())
    .execute();
  for (const { project, sha256, sent_at } of uploads) {
    const before = expiry.findBefore(project);
    if (before === undefined || sent_at >= before.toISOString()) continue;
    await runWriteTransaction(store, async (writing) => {
      if (await isModelNeeded(writing, project, sha256, before)) return;
      await forgetUploads(writing, project, [sha256]);
    });
  }
}

async function isModelNeeded(
  { trx }: WriteTransaction,
  project: string,
  sha256: string,
  before: Date,
): Promise<boolean> {
  const naming = selectManifestsWith(trx, project, sha256).select("manifest").limit(1);
  if ((await naming.executeTakeFirst()) !== undefined) return true;
  const source = uploadSource(sha256);
  if ((await findJobThatUses(trx, project, [source])) !== undefined) return true;
  const first = `job-${encodeIdTime(before)}`;
  const jobs = trx.selectFrom("jobs").select("id").where("project", "=", project);
  const recent = jobs.where("id", ">=", first).limit(1);
  const uploads = trx.selectFrom("project_blobs").select("sha256 as id").limit(1);
  const recentUsers = [
    uploads
      .where("project", "=", project)
      .where("sha256", "=", sha256)
      .where("created_at", ">=", before.toISOString()),
    ...uploadColumns.map((column) => recent.where(column, "=", source)),
  ];
  const found = await Promise.all(recentUsers.map((query) => query.executeTakeFirst()));
  if (found.some((row) => row !== undefined)) return true;
  // Its jobs can be submitted again by a button.
  const users = jobs.where((eb) => eb.or(uploadColumns.map((column) => eb(column, "=", source))));
  return (await findOpenReport(trx, users.$asScalar())) !== undefined;
}
