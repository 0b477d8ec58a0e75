import { type Job, job as jobSchema } from "../contract/job.ts";
import type { LogLine } from "../contract/log.ts";
import { type ServiceEvent, applyEvent } from "./apply-event.ts";
import { settleBatch } from "./settle-batch.ts";
import type { Writing } from "./store.ts";

/** A job with the bookkeeping of its workers. */
export interface JobRecord {
  readonly project: string;
  readonly job: Job;
  /** Attempts begun. */
  readonly attempt: number;
  readonly nextSeq: number;
  readonly nextLogSeq: number;
  /** Whether a worker may be at work. */
  readonly live: boolean;
}

interface JobRow {
  project: string;
  document: string;
  attempt: number;
  next_seq: number;
  next_log_seq: number;
  live: number;
}

export function parseJob(document: string): Job {
  return jobSchema.parse(JSON.parse(document));
}

/** The columns of a job that follow from the job itself. */
export function jobColumns(job: Job) {
  return {
    status: job.status,
    gates_failed: job.gates.some((gate) => !gate.passed) ? 1 : 0,
    document: JSON.stringify(job),
  };
}

function selectRecords(writing: Writing) {
  return writing.trx.selectFrom("jobs").select((eb) => [
    "jobs.project",
    "jobs.document",
    "jobs.attempt",
    "jobs.next_seq",
    "jobs.next_log_seq",
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

function recordOf(row: JobRow): JobRecord {
  return {
    project: row.project,
    job: parseJob(row.document),
    attempt: row.attempt,
    nextSeq: row.next_seq,
    nextLogSeq: row.next_log_seq,
    live: Number(row.live) > 0,
  };
}

export async function findRecord(writing: Writing, jobId: string): Promise<JobRecord | undefined> {
  const row = await selectRecords(writing).where("jobs.id", "=", jobId).executeTakeFirst();
  return row && recordOf(row);
}

/** Only while the attempt is the job's last and not ended. */
export async function findLiveRecord(writing: Writing, jobId: string, attempt: number): Promise<JobRecord | undefined> {
  const record = await findRecord(writing, jobId);
  return record?.live === true && record.attempt === attempt ? record : undefined;
}

export async function unfinishedOfBatch(writing: Writing, batchId: string): Promise<JobRecord[]> {
  const rows = await selectRecords(writing)
    .where("jobs.batch_id", "=", batchId)
    .where("jobs.status", "in", ["Pending", "Sharding", "Optimizing"])
    .execute();
  return rows.map(recordOf);
}

export interface RecordChange {
  readonly before: JobRecord;
  readonly after: JobRecord;
}

/** Writes what changed of jobs, and what follows from it for their batches. */
export async function saveRecords(writing: Writing, changes: readonly RecordChange[]): Promise<void> {
  const moved = changes.filter(({ before, after }) => before.job.status !== after.job.status);
  for (const { before, after } of changes) {
    const { job } = after;
    await writing.trx
      .updateTable("jobs")
      .set({
        attempt: after.attempt,
        next_seq: after.nextSeq,
        next_log_seq: after.nextLogSeq,
        ...(job !== before.job && jobColumns(job)),
      })
      .where("id", "=", job.id)
      .execute();
    writing.effects.changed.add(job.id);
    if (job.status === "Cancelling" && before.job.status !== "Cancelling") writing.effects.cancelling.add(job.id);
  }
  for (const batchId of new Set(moved.map(({ after }) => after.job.batchId))) {
    if (batchId === null) continue;
    const { failFast } = await settleBatch(writing, batchId);
    const failed = moved.some(({ after }) => after.job.batchId === batchId && after.job.status === "Failed");
    if (failFast && failed) await cancelRecords(writing, await unfinishedOfBatch(writing, batchId));
  }
}

/** Cancels jobs: at once where no worker is at work, else the executor hears of it and stops the worker. */
export async function cancelRecords(writing: Writing, records: readonly JobRecord[]): Promise<JobRecord[]> {
  const changes = records.map((before) => {
    const events: ServiceEvent[] = before.live ? [{ type: "cancel" }] : [{ type: "cancel" }, { type: "stopped" }];
    return {
      before,
      after: { ...before, job: events.reduce((job, event) => applyEvent(job, event, writing.now), before.job) },
    };
  });
  await saveRecords(writing, changes);
  return changes.map(({ after }) => after);
}

export async function insertLines(writing: Writing, jobId: string, lines: readonly LogLine[]): Promise<void> {
  const chunk = 500;
  for (let start = 0; start < lines.length; start += chunk) {
    await writing.trx
      .insertInto("log_lines")
      .values(lines.slice(start, start + chunk).map((line) => ({ job_id: jobId, ...line })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}
