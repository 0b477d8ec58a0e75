import { hasFailedGate } from "../contract/jobs/gate.ts";
import type { BatchSummary } from "../contract/jobs/page.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import type { WarningCode } from "../contract/jobs/warnings.ts";
import type { JobEvent } from "./apply-event.ts";
import { applyEvents } from "./apply-events.ts";
import { findBatchSource } from "./find-batch.ts";
import { type JobRecord, listCancellableRecords } from "./find-record.ts";
import { jobColumns } from "./job-columns.ts";
import { queueWebhookEvents } from "./queue-webhook-events.ts";
import { saveBaselines } from "./save-baselines.ts";
import type { WriteTransaction } from "./store.ts";
import { updateBatchSummary } from "./update-batch-summary.ts";

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
  if (job.status === "Pending" && before.job.status !== "Pending") {
    await countWaitingAgain(trx, after.project);
  }
  const entered = job.transitions.slice(before.job.transitions.length);
  const changed = entered.map(({ status }) => ({ ...job, status }));
  if (changed.length > 0) await queueWebhookEvents(writing, after.project, changed);
  if (job.status === "Cancelling" && before.job.status !== "Cancelling") {
    effects.cancelling.add(job.id);
  }
  if (isTerminal(job.status) && !isTerminal(before.job.status)) effects.ended.add(job.id);
}

/** The triggers count jobs that are added, and those that no longer wait. */
async function countWaitingAgain(trx: WriteTransaction["trx"], project: string): Promise<void> {
  await trx
    .updateTable("waiting_jobs")
    .set((eb) => ({ jobs: eb("jobs", "+", 1) }))
    .where("project", "=", project)
    .execute();
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
  const warnings = [warning, ...job.telemetry.warnings];
  return { ...record, job: { ...job, telemetry: { ...job.telemetry, warnings } } };
}

/**
 * Cancels jobs: at once where no worker may be running, else `effects.cancelling` makes the
 * executor stop the worker.
 */
export async function cancelRecords(
  writing: WriteTransaction,
  records: readonly JobRecord[],
): Promise<JobRecord[]> {
  const changes = records.map((before) => {
    const events: JobEvent[] = [{ type: "cancel" }];
    if (!before.live) events.push({ type: "stopped" });
    return { before, after: { ...before, job: applyEvents(before.job, events, writing.now) } };
  });
  await saveRecords(writing, changes);
  return changes.map(({ after }) => after);
}
