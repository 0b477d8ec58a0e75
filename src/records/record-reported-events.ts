import { isTerminal } from "../contract/jobs/status.ts";
import type { ModelOutline, OptimizedShare, WorkerEvent } from "../contract/jobs/worker.ts";
import { appendLines } from "./append-lines.ts";
import { applyReportedEvents } from "./apply-reported-events.ts";
import { type AttemptRecord, currentAttempts, findAttempts } from "./find-attempts.ts";
import { findRecord } from "./find-record.ts";
import { unreadLines } from "./lost-lines.ts";
import { saveRecords } from "./save-records.ts";
import type { WriteTransaction } from "./store.ts";

/** The service's answer to events of a worker. */
interface EventsAcknowledgement {
  readonly nextSeq: number;
  /** Whether the worker has to stop. */
  readonly cancelled: boolean;
}

interface ReportedEvents {
  readonly jobId: string;
  readonly attempt: number;
  readonly events: readonly WorkerEvent[];
  /** Whether missing events are lost, since the worker sends no more. */
  readonly isFinal: boolean;
}

/** Records events of a worker that are not recorded yet. */
export async function recordReportedEvents(
  writing: WriteTransaction,
  reported: ReportedEvents,
): Promise<EventsAcknowledgement> {
  const { jobId, attempt: number } = reported;
  const before = await findRecord(writing, jobId);
  const attempts = await findAttempts(writing.trx, jobId);
  const attempt = attempts.find((one) => one.attempt === number);
  if (before === undefined || attempt === undefined) return { nextSeq: 1, cancelled: true };
  const isCurrent = currentAttempts(attempts).includes(attempt);
  const reporting = { job: before.job, attempt, attempts, isCurrent };
  const applied = applyReportedEvents(reporting, reported, writing.now);
  const { nextSeq } = applied.attempt;
  if (nextSeq > attempt.nextSeq) {
    await saveAttempt(writing, jobId, applied.attempt);
    if (applied.hasResult) await endPodAttempt(writing, jobId, number);
    for (const share of applied.shares) await saveShare(writing, jobId, share);
    if (applied.outline) await saveOutline(writing, jobId, applied.outline);
    const endsJob = isTerminal(applied.job.status) && !isTerminal(before.job.status);
    const unread = endsJob ? unreadLines(attempts, writing.now) : [];
    const lines = [...applied.lines, ...unread];
    const after = await appendLines(writing, { ...before, job: applied.job }, lines);
    await saveRecords(writing, [{ before, after }]);
  }
  const isCancelled = ["Cancelling", "Cancelled"].includes(applied.job.status);
  const isOver = isTerminal(before.job.status) || attempt.endedAt !== null || !isCurrent;
  return { nextSeq, cancelled: isCancelled || isOver };
}

async function saveAttempt(
  { trx }: WriteTransaction,
  jobId: string,
  { attempt, nextSeq, progress, stages }: AttemptRecord,
): Promise<void> {
  await trx
    .updateTable("attempts")
    .set({ next_seq: nextSeq, progress, stages: JSON.stringify(stages) })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt)
    .execute();
}

/** A worker reports its result last: nothing is missing where its pod is deleted now. */
async function endPodAttempt(
  { trx, now }: WriteTransaction,
  jobId: string,
  attempt: number,
): Promise<void> {
  await trx
    .updateTable("attempts")
    .set({ ended_at: now.toISOString() })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt)
    .where("pod_uid", "is not", null)
    .execute();
}

async function saveShare(
  { trx }: WriteTransaction,
  jobId: string,
  { index, sha256, bytes }: OptimizedShare,
): Promise<void> {
  await trx
    .insertInto("job_shares")
    .values({ job_id: jobId, share: index, sha256, bytes })
    .onConflict((conflict) => conflict.columns(["job_id", "share"]).doUpdateSet({ sha256, bytes }))
    .execute();
}

async function saveOutline(
  { trx }: WriteTransaction,
  jobId: string,
  { sha256, bytes }: ModelOutline,
): Promise<void> {
  await trx
    .insertInto("job_outlines")
    .values({ job_id: jobId, sha256, bytes })
    .onConflict((conflict) => conflict.column("job_id").doUpdateSet({ sha256, bytes }))
    .execute();
}
