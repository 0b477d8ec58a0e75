import { applyEvents, type JobEvent } from "./apply-event.ts";
import { findBatchSource } from "./find-batch.ts";
import { type JobRecord, listCancellableRecords } from "./find-record.ts";
import { jobColumns } from "./insert-jobs.ts";
import { type BatchSource, claimSuite, recordsInSuite } from "./suite-records.ts";
import { baselineFigures, type RecordedBaseline } from "../../contract/jobs/baseline.ts";
import type { Requester } from "../../contract/jobs/creation.ts";
import {
  type BatchSummary,
  batchSummary,
  deriveBatchStatus,
  zeroCounts,
} from "../../contract/batches/batch.ts";
import { hasFailedGate } from "../../contract/jobs/gate.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { maxWarnings } from "../../contract/jobs/telemetry.ts";
import type { WarningCode } from "../../contract/jobs/warnings.ts";
import { addWaitingJobs } from "../database/counters.ts";
import type { WriteTransaction } from "../database/store.ts";
import { deleteSharedBlobs } from "../blobs/release-blobs.ts";
import { queueWebhookEvents } from "../deliveries/queue-webhook-events.ts";

interface RecordChange {
  readonly before: JobRecord;
  readonly after: JobRecord;
}

/** Writes changed jobs and updates their batches. */
export async function saveRecords(
  writing: WriteTransaction,
  changes: readonly RecordChange[],
): Promise<void> {
  for (const change of changes) await saveRecord(writing, change);
  const moved = changes
    .filter(({ before, after }) => before.job.status !== after.job.status)
    .map(({ after }) => after);
  for (const batchId of new Set(moved.map(({ job }) => job.batchId))) {
    if (batchId === null) continue;
    const records = moved.filter(({ job }) => job.batchId === batchId);
    await updateBatch(writing, batchId, records);
  }
}

async function saveRecord(
  writing: WriteTransaction,
  { before, after }: RecordChange,
): Promise<void> {
  const { trx, effects } = writing;
  const { job } = after;
  const counters = { attempt: after.attempt, next_log_seq: after.nextLogSeq };
  await trx
    .updateTable("jobs")
    .set(job === before.job ? counters : { ...counters, ...jobColumns(job) })
    .where("id", "=", job.id)
    .execute();
  effects.changed.add(job.id);
  const waiting = Number(job.status === "Pending") - Number(before.job.status === "Pending");
  await addWaitingJobs(trx, after.project, waiting);
  const entered = job.transitions.slice(before.job.transitions.length);
  const changed = entered.map((transition) => summarizeJob(rewindJob(job, transition)));
  if (changed.length > 0) await queueWebhookEvents(writing, after.project, changed);
  if (job.status === "Cancelling" && before.job.status !== "Cancelling") {
    effects.cancelling.add(job.id);
  }
  if (!isTerminal(job.status) || isTerminal(before.job.status)) return;
  effects.ended.add(job.id);
  if (job.recipe.parallelism > 1) await deleteSharedBlobs(writing, after.project, job);
}

/** A job in a status that it entered, though it may have left it in the same change. */
function rewindJob(job: Job, entered: Job["transitions"][number]): Job {
  const { status, at, reason = job.statusReason, message = job.statusMessage } = entered;
  const finishedAt = isTerminal(status) ? job.finishedAt : null;
  return {
    ...job,
    status,
    statusReason: reason,
    statusMessage: message,
    updatedAt: at,
    finishedAt,
  };
}

/** Updates a batch after the status of some of its jobs changed. */
async function updateBatch(
  writing: WriteTransaction,
  batchId: string,
  records: readonly JobRecord[],
): Promise<void> {
  const batch = await updateBatchSummary(writing, batchId);
  await recordBaselines(writing, batch, records);
  if (batch.failFast && records.some(({ job }) => job.status === "Failed")) {
    await cancelRecords(writing, await listCancellableRecords(writing, batchId));
  }
}

/**
 * Makes jobs that passed their gates baselines, where the batch's revision asks for it; a job that
 * does not become one has a warning.
 */
async function recordBaselines(
  writing: WriteTransaction,
  { id, suite, revision }: BatchSummary,
  records: readonly JobRecord[],
): Promise<void> {
  if (suite === null || !revision?.recordBaseline || revision.branch === undefined) return;
  const { sha, branch } = revision;
  const source = await findBatchSource(writing.trx, id);
  for (const record of records) {
    const { project, job } = record;
    if (job.status !== "Completed" || job.dryRun || hasFailedGate(job.gates)) continue;
    const isSaved = await saveBaselines(writing, { project, suite, branch, sha, source }, [job]);
    if (!isSaved)
      await saveRecord(writing, { before: record, after: withoutBaseline(record, suite) });
  }
}

function withoutBaseline(record: JobRecord, suite: string): JobRecord {
  const { job } = record;
  const message = `The suite "${suite}" belongs to a repository that the batch does not come from`;
  const warning = { code: "baseline_not_recorded" satisfies WarningCode, message };
  const warnings = [warning, ...job.telemetry.warnings].slice(0, maxWarnings);
  return { ...record, job: { ...job, telemetry: { ...job.telemetry, warnings } } };
}

/**
 * Cancels jobs: at once where no worker may be running, else `effects.cancelling` makes the
 * executor stop the worker.
 * @param by whose request it was; by default nobody's
 */
export async function cancelRecords(
  writing: WriteTransaction,
  records: readonly JobRecord[],
  by?: Requester,
): Promise<JobRecord[]> {
  const changes = records.map((before) => {
    const events: JobEvent[] = [{ type: "cancel", by }];
    if (!before.live) events.push({ type: "stopped" });
    return { before, after: { ...before, job: applyEvents(before.job, events, writing.now) } };
  });
  await saveRecords(writing, changes);
  return changes.map(({ after }) => after);
}

/** Updates a batch's record from its jobs. */
async function updateBatchSummary(
  writing: WriteTransaction,
  batchId: string,
): Promise<BatchSummary> {
  const { trx, now, effects } = writing;
  const row = await trx
    .selectFrom("batches")
    .select(["document", "project"])
    .where("id", "=", batchId)
    .executeTakeFirstOrThrow();
  const before = batchSummary.parse(JSON.parse(row.document));
  const after = batchSummary.parse({ ...before, ...(await countJobs(writing, batchId)) });
  after.status = deriveBatchStatus(after.counts);
  if (isTerminal(after.status)) after.finishedAt = before.finishedAt ?? now.toISOString();
  await trx
    .updateTable("batches")
    .set({ status: after.status, document: JSON.stringify(after) })
    .where("id", "=", batchId)
    .execute();
  effects.changed.add(batchId);
  if (after.status !== before.status) await queueWebhookEvents(writing, row.project, [after]);
  return after;
}

async function countJobs({ trx }: WriteTransaction, batchId: string) {
  const rows = await trx
    .selectFrom("jobs")
    .select((eb) => [
      "status",
      eb.fn.countAll<number>().as("jobs"),
      eb.fn.sum<number>("gates_failed").as("gatesFailed"),
    ])
    .where("batch_id", "=", batchId)
    .groupBy("status")
    .execute();
  const counts = Object.fromEntries(rows.map((row) => [row.status, Number(row.jobs)]));
  return {
    counts: { ...zeroCounts, ...counts },
    gatesFailed: rows.reduce((sum, row) => sum + Number(row.gatesFailed), 0),
  };
}

/** Where the baselines of a commit are recorded. */
interface BaselineCommit extends Pick<RecordedBaseline, "branch" | "sha"> {
  readonly project: string;
  readonly suite: string;
  /** Of the batch that the jobs belong to. */
  readonly source: BatchSource;
}

/**
 * Makes completed jobs the baselines of a commit, unless later jobs are already. False where the
 * suite belongs to a repository that the batch does not reach.
 */
export async function saveBaselines(
  writing: WriteTransaction,
  { project, suite, branch, sha, source }: BaselineCommit,
  jobs: readonly Job[],
): Promise<boolean> {
  const suiteRepository = await claimSuite(writing, project, suite, source.repository);
  if (!recordsInSuite(source, suiteRepository)) return false;
  for (const { id, model, target, telemetry } of jobs) {
    const measured: RecordedBaseline = { ...baselineFigures(telemetry), jobId: id, sha, branch };
    const figures = { job_id: id, document: JSON.stringify(measured) };
    await writing.trx
      .insertInto("baselines")
      .values({ project, suite, model: model.name, target, branch, sha, ...figures })
      .onConflict((conflict) =>
        conflict
          .columns(["project", "suite", "model", "target", "branch", "sha"])
          .doUpdateSet(figures)
          .where("baselines.job_id", "<", id),
      )
      .execute();
  }
  return true;
}
