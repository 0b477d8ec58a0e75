import { hasFailedGate } from "../contract/gate.ts";
import { type Job, job as jobSchema } from "../contract/job.ts";
import type { LogLine } from "../contract/log.ts";
import type { BatchSummary } from "../contract/page.ts";
import { type ServiceEvent, applyEvent } from "./apply-event.ts";
import { saveBaselines } from "./save-baselines.ts";
import { updateBatchSummary } from "./update-batch-summary.ts";
import { type ResourceReference, parseResource } from "./resource-reference.ts";
import type { WriteTransaction } from "./store.ts";

/** A job with the bookkeeping of its workers. */
export interface JobRecord {
  readonly project: string;
  readonly job: Job;
  /** Attempts begun. */
  readonly attempt: number;
  readonly nextLogSeq: number;
  readonly resource: ResourceReference | null;
  /** Whether a worker may be at work, as it may while a custom resource holds the job. */
  readonly live: boolean;
}

interface JobRow {
  project: string;
  document: string;
  attempt: number;
  next_log_seq: number;
  resource: string | null;
  live: number;
}

const linesPerInsert = 500;

export function parseJob(document: string): Job {
  return jobSchema.parse(JSON.parse(document));
}

/** The columns of a job that follow from the job itself. */
export function jobColumns(job: Job) {
  return {
    status: job.status,
    gates_failed: hasFailedGate(job.gates) ? 1 : 0,
    document: JSON.stringify(job),
  };
}

function selectRecords(writing: WriteTransaction) {
  return writing.trx.selectFrom("jobs").select((eb) => [
    "jobs.project",
    "jobs.document",
    "jobs.attempt",
    "jobs.next_log_seq",
    "jobs.resource",
    eb
      .selectFrom("attempts")
      .select((count) => count.fn.countAll<number>().as("count"))
      .whereRef("attempts.job_id", "=", "jobs.id")
      .where("attempts.ended_at", "is", null)
      .$asScalar()
      .$notNull()
      .as("live"),
  ]);
}

function parseJobRow(row: JobRow): JobRecord {
  return {
    project: row.project,
    job: parseJob(row.document),
    attempt: row.attempt,
    nextLogSeq: row.next_log_seq,
    resource: parseResource(row.resource),
    live: Number(row.live) > 0 || row.resource !== null,
  };
}

export async function findRecord(
  writing: WriteTransaction,
  jobId: string,
): Promise<JobRecord | undefined> {
  const row = await selectRecords(writing).where("jobs.id", "=", jobId).executeTakeFirst();
  return row && parseJobRow(row);
}

export async function listUnfinishedRecords(
  writing: WriteTransaction,
  batchId: string,
): Promise<JobRecord[]> {
  const rows = await selectRecords(writing)
    .where("jobs.batch_id", "=", batchId)
    .where("jobs.status", "in", ["Pending", "Sharding", "Optimizing"])
    .execute();
  return rows.map(parseJobRow);
}

export interface RecordChange {
  readonly before: JobRecord;
  readonly after: JobRecord;
}

/** Writes what changed of jobs, and what follows from it for their batches. */
export async function saveRecords(
  writing: WriteTransaction,
  changes: readonly RecordChange[],
): Promise<void> {
  const moved = changes.filter(({ before, after }) => before.job.status !== after.job.status);
  for (const { before, after } of changes) {
    const { job } = after;
    await writing.trx
      .updateTable("jobs")
      .set({
        attempt: after.attempt,
        next_log_seq: after.nextLogSeq,
        ...(job !== before.job && jobColumns(job)),
      })
      .where("id", "=", job.id)
      .execute();
    writing.effects.changed.add(job.id);
    if (job.status === "Cancelling" && before.job.status !== "Cancelling")
      writing.effects.cancelling.add(job.id);
  }
  for (const batchId of new Set(moved.map(({ after }) => after.job.batchId))) {
    if (batchId === null) continue;
    const ofBatch = moved.flatMap(({ after }) => (after.job.batchId === batchId ? [after] : []));
    const batch = await updateBatchSummary(writing, batchId);
    await recordBaselines(writing, batch, ofBatch);
    const failed = ofBatch.some(({ job }) => job.status === "Failed");
    if (batch.failFast && failed)
      await cancelRecords(writing, await listUnfinishedRecords(writing, batchId));
  }
}

/** What passed its gates becomes what later jobs are compared with, where the batch is to record that. */
async function recordBaselines(
  writing: WriteTransaction,
  { suite, revision }: BatchSummary,
  records: readonly JobRecord[],
): Promise<void> {
  if (suite === null || !revision?.recordBaseline || revision.branch === undefined) return;
  const { sha, branch } = revision;
  for (const { project, job } of records) {
    if (job.status !== "Completed" || job.dryRun || hasFailedGate(job.gates)) continue;
    await saveBaselines(writing, { project, suite, branch, sha }, [job]);
  }
}

/** Cancels jobs: at once where no worker is at work, else the executor hears of it and stops the worker. */
export async function cancelRecords(
  writing: WriteTransaction,
  records: readonly JobRecord[],
): Promise<JobRecord[]> {
  const changes = records.map((before) => {
    const events: ServiceEvent[] = before.live
      ? [{ type: "cancel" }]
      : [{ type: "cancel" }, { type: "stopped" }];
    return {
      before,
      after: {
        ...before,
        job: events.reduce((job, event) => applyEvent(job, event, writing.now), before.job),
      },
    };
  });
  await saveRecords(writing, changes);
  return changes.map(({ after }) => after);
}

/** Appends lines to the job's log, in the order in which they arrived; the record counts them once it is saved. */
export async function appendLines(
  writing: WriteTransaction,
  record: JobRecord,
  lines: readonly Omit<LogLine, "seq">[],
): Promise<JobRecord> {
  const rows = lines.map((line, i) => ({
    ...line,
    job_id: record.job.id,
    seq: record.nextLogSeq + i,
  }));
  for (let start = 0; start < rows.length; start += linesPerInsert) {
    const chunk = rows.slice(start, start + linesPerInsert);
    await writing.trx.insertInto("log_lines").values(chunk).execute();
  }
  return { ...record, nextLogSeq: record.nextLogSeq + lines.length };
}
