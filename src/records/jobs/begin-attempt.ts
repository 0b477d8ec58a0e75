import type { Insertable } from "kysely";
import { statusCause } from "../../contract/jobs/status-reasons.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { appendLines } from "./log-records.ts";
import { applyEvents } from "./apply-event.ts";
import { type AttemptRecord, findAttempts, type JobPart } from "./find-attempts.ts";
import { findRecord, type JobRecord } from "./find-record.ts";
import { saveRecords } from "./save-records.ts";
import type { Schema } from "../database/schema.ts";
import type { WriteTransaction } from "../database/store.ts";
import { restartEvents } from "./translate-part-event.ts";

export interface StartedAttempt {
  readonly attempt: number;
  /** Attempts before it that failed and were not disrupted. */
  readonly failedAttempts: number;
  /** Time limit of the attempt, seconds. */
  readonly deadlineSeconds: number | undefined;
}

/** A pod that works on a job. */
export interface AttemptPod {
  readonly podUid: string;
  readonly part: JobPart | null;
}

interface NewAttempt {
  readonly part: JobPart | null;
  /** Whether the job's reason says so: that of a resource is the operator's. */
  readonly starts?: true;
  readonly columns: Partial<Insertable<Schema["attempts"]>>;
}

/** Undefined where the job needs no worker, or has one. */
export async function beginLocalAttempt(
  writing: WriteTransaction,
  jobId: string,
  secretHash: string,
): Promise<StartedAttempt | undefined> {
  const running = await findRunningAttempt(writing, jobId);
  // Begun before, by a transaction whose answer was lost, or by another replica.
  if (running !== undefined && running.secret_hash !== secretHash) return undefined;
  const columns = { secret_hash: secretHash, replica: writing.replica.id };
  const record = running
    ? await findRecord(writing, jobId)
    : await beginAttempt(writing, jobId, { part: null, columns, starts: true });
  if (record === undefined) return undefined;
  writing.effects.begun.add(jobId);
  const { attempt, job } = record;
  const failed = (await findAttempts(writing.trx, jobId)).filter(isFailed);
  return { attempt, failedAttempts: failed.length, deadlineSeconds: job.deadlineSeconds };
}

function isFailed({ endedAt, wasDisrupted }: AttemptRecord): boolean {
  return endedAt !== null && !wasDisrupted;
}

async function findRunningAttempt({ trx }: WriteTransaction, jobId: string) {
  return trx
    .selectFrom("attempts")
    .select("secret_hash")
    .where("job_id", "=", jobId)
    .where("ended_at", "is", null)
    .executeTakeFirst();
}

export async function beginPodAttempt(
  writing: WriteTransaction,
  jobId: string,
  pod: AttemptPod,
): Promise<number | undefined> {
  const known = await writing.trx
    .selectFrom("attempts")
    .select("attempt")
    .where("job_id", "=", jobId)
    .where("pod_uid", "=", pod.podUid)
    .executeTakeFirst();
  return known?.attempt ?? (await beginAttempt(writing, jobId, newPodAttempt(pod)))?.attempt;
}

export async function ensurePodAttempt(
  writing: WriteTransaction,
  jobId: string,
  pod: AttemptPod,
): Promise<number | undefined> {
  const attempt = await beginPodAttempt(writing, jobId, pod);
  const before = await findRecord(writing, jobId);
  if (attempt !== undefined || before === undefined) return attempt;
  const after = { ...before, attempt: before.attempt + 1 };
  await insertAttempt(writing, after, newPodAttempt(pod));
  await saveRecords(writing, [{ before, after }]);
  return after.attempt;
}

function newPodAttempt({ podUid, part }: AttemptPod): NewAttempt {
  return {
    part,
    columns: { pod_uid: podUid, step: part?.step ?? null, share: part?.index ?? null },
  };
}

async function beginAttempt(
  writing: WriteTransaction,
  jobId: string,
  newAttempt: NewAttempt,
): Promise<JobRecord | undefined> {
  const before = await findRecord(writing, jobId);
  if (before === undefined || isTerminal(before.job.status)) return undefined;
  if (before.job.status === "Cancelling") return undefined;
  const { part } = newAttempt;
  const attempts = await findAttempts(writing.trx, jobId);
  const isRestart = attempts.some(
    (other) => other.part?.step === part?.step && other.part?.index === part?.index,
  );
  const started = { ...before, attempt: before.attempt + 1 };
  const restarted = isRestart ? await restartRecord(writing, started, part) : started;
  const after = newAttempt.starts ? sayThatWorkerStarts(restarted) : restarted;
  await insertAttempt(writing, after, newAttempt);
  await saveRecords(writing, [{ before, after }]);
  return after;
}

/** It waits no longer, and is not worked on yet: seconds in which it would seem stuck. */
function sayThatWorkerStarts(record: JobRecord): JobRecord {
  if (record.job.status !== "Pending") return record;
  const { reason, message } = statusCause("starting");
  return { ...record, job: { ...record.job, statusReason: reason, statusMessage: message } };
}

async function insertAttempt(
  { trx, now }: WriteTransaction,
  { job, attempt }: JobRecord,
  { columns }: NewAttempt,
): Promise<void> {
  const started = { progress: 0, next_seq: 1, started_at: now.toISOString() };
  await trx
    .insertInto("attempts")
    .values({ job_id: job.id, attempt, ...started, ...columns })
    .execute();
}

async function restartRecord(
  writing: WriteTransaction,
  record: JobRecord,
  part: JobPart | null,
): Promise<JobRecord> {
  const { now, trx } = writing;
  // It may fetch another model, which other shares belong to.
  if (part?.step === "shard") {
    await trx.deleteFrom("job_shares").where("job_id", "=", record.job.id).execute();
  }
  const text = `${restartReason(record, part)}: attempt ${record.attempt} begins`;
  const line = { stream: "stderr", text, at: now.toISOString() } as const;
  const logged = await appendLines(writing, record, [line]);
  return { ...logged, job: applyEvents(logged.job, restartEvents(logged.job, part), now) };
}

function restartReason({ resource }: JobRecord, part: JobPart | null): string {
  if (resource === null) return "Another worker takes over";
  const share = part?.step === "optimize" ? ` share ${part.index + 1}` : "";
  return `Another pod takes over${share}`;
}
