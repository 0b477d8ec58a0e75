import { applyEvent } from "./apply-event.ts";
import { findAssignment, findOpenAttempt } from "./find-assignment.ts";
import {
  addEndedStage,
  type AttemptRecord,
  currentAttempts,
  findAttempts,
} from "./find-attempts.ts";
import { findEarlierCosts } from "./find-earlier-costs.ts";
import { findRecord } from "./find-record.ts";
import { appendLines, unreadLines } from "./log-records.ts";
import { saveRecords } from "./save-records.ts";
import { translatePartEvent } from "./translate-part-event.ts";
import type { Job } from "../../contract/jobs/job.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import type {
  ModelOutline,
  OptimizedShare,
  WorkerEvent,
} from "../../contract/worker-protocol/messages.ts";
import {
  runReadTransaction,
  runWriteTransaction,
  type Store,
  type WriteTransaction,
} from "../database/store.ts";

/** What workers ask and report. */
export function workerRecords(store: Store) {
  return {
    /** The attempt that a worker's secret belongs to. */
    async findAttemptBySecret(jobId: string, secretHash: string): Promise<number | undefined> {
      const row = await store.db
        .selectFrom("attempts")
        .select("attempt")
        .where("job_id", "=", jobId)
        .where("secret_hash", "=", secretHash)
        .executeTakeFirst();
      return row?.attempt;
    },

    /** Whether neither the job nor the attempt has ended. */
    isOpen: (jobId: string, attempt: number) =>
      runReadTransaction(
        store,
        async (trx) => (await findOpenAttempt(trx, jobId, attempt)) !== undefined,
      ),

    /** What the worker of an attempt does; undefined where the job or the attempt has ended. */
    findAssignment: (jobId: string, attempt: number) =>
      runReadTransaction(store, (trx) => findAssignment(trx, jobId, attempt)),

    /** What the last jobs like this one took. */
    findEarlierCosts: (jobId: string) =>
      runReadTransaction(store, (trx) => findEarlierCosts(trx, jobId)),

    /**
     * Records what a worker reports. Events that are recorded already are ignored, and so is
     * everything after a gap: the answer names the next event. The worker of an attempt that has
     * ended has to stop: its missing lines are recorded, and its other events count only while no
     * later attempt has replaced it and the job has not ended.
     */
    recordEvents: (jobId: string, attempt: number, events: readonly WorkerEvent[]) =>
      runWriteTransaction(store, (writing) =>
        recordReportedEvents(writing, { jobId, attempt, events, isFinal: false }),
      ),

    /** Records events of a worker that has ended, such as from its pod's log: gaps stay gaps. */
    recordFinalEvents: (jobId: string, attempt: number, events: readonly WorkerEvent[]) =>
      runWriteTransaction(store, (writing) =>
        recordReportedEvents(writing, { jobId, attempt, events, isFinal: true }),
      ),
  };
}

type NewLine = Omit<LogLine, "seq">;

interface ReportingAttempt {
  readonly job: Job;
  readonly attempt: AttemptRecord;
  readonly attempts: readonly AttemptRecord[];
  /** Whether no later attempt has replaced this one. */
  readonly isCurrent: boolean;
}

interface AppliedEvents {
  readonly job: Job;
  readonly attempt: AttemptRecord;
  readonly lines: readonly NewLine[];
  readonly shares: readonly OptimizedShare[];
  /** What a shard step stored of the model; undefined where it reported nothing. */
  readonly outline: ModelOutline | undefined;
  /** Whether the worker reported its result, and with it all that it did. */
  readonly hasResult: boolean;
}

/** A job and its attempt after events. Of a replaced attempt only lines count. */
function applyReportedEvents(
  { job: initialJob, attempt: initialAttempt, attempts, isCurrent }: ReportingAttempt,
  { events, isFinal }: Pick<ReportedEvents, "events" | "isFinal">,
  now: Date,
): AppliedEvents {
  const lines: NewLine[] = [];
  const shares: OptimizedShare[] = [];
  let outline: ModelOutline | undefined;
  let hasResult = false;
  let [job, attempt] = [initialJob, initialAttempt];
  for (const event of events) {
    if (event.seq < attempt.nextSeq) continue;
    if (event.seq > attempt.nextSeq) {
      if (!isFinal) break;
      lines.push(lostEventsLine(event.seq - attempt.nextSeq, event.at));
    }
    attempt = advanceAttempt(attempt, event);
    hasResult ||= event.type === "result";
    if (event.type === "log") lines.push({ at: event.at, stream: event.stream, text: event.text });
    if (!isCurrent) continue;
    if (event.type === "share" && event.share.index === attempt.part?.index) {
      shares.push(event.share);
    }
    if (event.type === "outline" && attempt.part?.step === "shard") outline = event.outline;
    job = applyAttemptEvent(job, event, { attempt, attempts, now });
  }
  return { job, attempt, lines, shares, outline, hasResult };
}

function applyAttemptEvent(
  job: Job,
  event: WorkerEvent,
  { attempt, attempts, now }: Omit<ReportingAttempt, "job" | "isCurrent"> & { readonly now: Date },
): Job {
  if (attempt.part === null) return applyEvent(job, event, now);
  const known = attempts.map((one) => (one.attempt === attempt.attempt ? attempt : one));
  return applyEvent(job, translatePartEvent(event, attempt.part, { job, attempts: known }), now);
}

function advanceAttempt(attempt: AttemptRecord, event: WorkerEvent): AttemptRecord {
  return {
    ...attempt,
    nextSeq: event.seq + 1,
    progress: readProgress(event) ?? attempt.progress,
    stages: addEndedStage(attempt.stages, event),
  };
}

function lostEventsLine(count: number, at: string): NewLine {
  const events = formatCount(count, "event of the worker was", "events of the worker were");
  const text = `(${events} lost while the service could not be reached)`;
  return { at, stream: "stderr", text };
}

function readProgress(event: WorkerEvent): number | undefined {
  if (event.type === "telemetry") return event.telemetry.progress?.fraction;
  return event.type === "result" && event.outcome === "Completed" ? 1 : undefined;
}

interface ReportedEvents {
  readonly jobId: string;
  readonly attempt: number;
  readonly events: readonly WorkerEvent[];
  /** Whether missing events are lost, since the worker sends no more. */
  readonly isFinal: boolean;
}

/** Records events of a worker that are not recorded yet. */
async function recordReportedEvents(
  writing: WriteTransaction,
  reported: ReportedEvents,
): Promise<{
  readonly nextSeq: number;
  /** Whether the worker has to stop. */
  readonly cancelled: boolean;
}> {
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
    // What pods made for one another was deleted when the job ended.
    if (!isTerminal(before.job.status)) await saveSharedFiles(writing, jobId, applied);
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

async function saveSharedFiles(
  writing: WriteTransaction,
  jobId: string,
  { shares, outline }: AppliedEvents,
): Promise<void> {
  for (const share of shares) await saveShare(writing, jobId, share);
  if (outline) await saveOutline(writing, jobId, outline);
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
