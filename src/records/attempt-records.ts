import type { Insertable } from "kysely";
import type { JobError } from "../contract/errors.ts";
import type { LogLine } from "../contract/log.ts";
import { isTerminal } from "../contract/status.ts";
import { applyEvent, type JobEvent } from "./apply-event.ts";
import { currentAttempts, findAttempts, type JobPart } from "./find-attempts.ts";
import { appendLines, findRecord, type JobRecord, saveRecords } from "./save-job-records.ts";
import { restartEvents } from "./translate-part-event.ts";
import type { Schema } from "./schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** A process, told apart from later ones with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startMark: string;
}

export interface BegunAttempt {
  readonly attempt: number;
  /** Limit of the attempt, seconds. */
  readonly deadlineSeconds: number | undefined;
}

/** How an attempt ended besides what its worker told. */
export interface AttemptEnd {
  /** What the job fails with unless it has ended or is being cancelled; null where others decide what becomes of it. */
  readonly error: JobError | null;
  /** Output that the worker could not tell any more. */
  readonly lines: readonly Pick<LogLine, "stream" | "text">[];
}

/** A job that has not ended, as an earlier run of the service left it. */
export interface UnfinishedJob {
  readonly jobId: string;
  readonly attempt: number;
  /** Whether the last attempt was not ended. */
  readonly live: boolean;
  readonly process: ProcessIdentity | null;
}

/** A pod that works on a job. */
export interface AttemptPod {
  readonly podUid: string;
  readonly part: JobPart | null;
}

export function attemptRecords(store: Store) {
  return {
    /** Begins the next attempt, of a process here; undefined where the job is not to be worked on any more. */
    begin(jobId: string, secretHash: string): Promise<BegunAttempt | undefined> {
      return runWriteTransaction(store, async (writing) => {
        const begun = await beginAttempt(writing, jobId, {
          part: null,
          columns: { secret_hash: secretHash },
        });
        return begun && { attempt: begun.attempt, deadlineSeconds: begun.job.deadlineSeconds };
      });
    },

    /**
     * The number of a pod's attempt, which begins when the pod is met for the first time; undefined where the job is not to
     * be worked on any more. Pods with different parts work on a job at once.
     */
    beginPodAttempt(jobId: string, pod: AttemptPod): Promise<number | undefined> {
      return runWriteTransaction(store, (writing) => beginPodAttempt(writing, jobId, pod));
    },

    /** The number of a pod's attempt, also where the pod never asked what to do and the job has ended since. */
    ensurePodAttempt(jobId: string, pod: AttemptPod): Promise<number | undefined> {
      return runWriteTransaction(store, (writing) => ensurePodAttempt(writing, jobId, pod));
    },

    /** What is known of a pod's attempt. */
    async findPodAttempt(jobId: string, podUid: string) {
      const row = await store.db
        .selectFrom("attempts")
        .select(["attempt", "next_seq", "ended_at"])
        .where("job_id", "=", jobId)
        .where("pod_uid", "=", podUid)
        .executeTakeFirst();
      return row && { attempt: row.attempt, nextSeq: row.next_seq, ended: row.ended_at !== null };
    },

    /** Pods whose attempts have not been ended, of one job or of all. */
    async listLivePods(
      ofJob?: string,
    ): Promise<{ jobId: string; attempt: number; podUid: string }[]> {
      let live = store.db.selectFrom("attempts").where("ended_at", "is", null);
      if (ofJob !== undefined) live = live.where("job_id", "=", ofJob);
      const rows = await live.select(["job_id", "attempt", "pod_uid"]).orderBy("job_id").execute();
      return rows.flatMap(({ job_id: jobId, attempt, pod_uid: podUid }) =>
        podUid === null ? [] : [{ jobId, attempt, podUid }],
      );
    },

    async recordProcess(jobId: string, attempt: number, mark: ProcessIdentity): Promise<void> {
      await store.db
        .updateTable("attempts")
        .set({ pid: mark.pid, start_mark: mark.startMark })
        .where("job_id", "=", jobId)
        .where("attempt", "=", attempt)
        .execute();
    },

    /** No process of the attempt runs any more. */
    async end(jobId: string, attempt: number, end: AttemptEnd): Promise<void> {
      await runWriteTransaction(store, (writing) => endAttempt(writing, { jobId, attempt, end }));
    },

    listUnfinished: () => listUnfinishedLocalJobs(store),
  };
}

/** Jobs of this machine that have not ended, in the order in which they were made. */
async function listUnfinishedLocalJobs(store: Store): Promise<UnfinishedJob[]> {
  const rows = await store.db
    .selectFrom("jobs")
    .leftJoin("attempts", (join) =>
      join.onRef("attempts.job_id", "=", "jobs.id").onRef("attempts.attempt", "=", "jobs.attempt"),
    )
    .select(["jobs.id", "jobs.attempt", "started_at", "ended_at", "pid", "start_mark"])
    .where("jobs.status", "in", ["Pending", "Sharding", "Optimizing", "Cancelling"])
    .where("jobs.resource", "is", null)
    .orderBy("jobs.id")
    .execute();
  return rows.map((row) => ({
    jobId: row.id,
    attempt: row.attempt,
    live: row.started_at !== null && row.ended_at === null,
    process:
      row.pid === null || row.start_mark === null
        ? null
        : { pid: row.pid, startMark: row.start_mark },
  }));
}

async function beginPodAttempt(
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

async function ensurePodAttempt(
  writing: WriteTransaction,
  jobId: string,
  pod: AttemptPod,
): Promise<number | undefined> {
  const begun = await beginPodAttempt(writing, jobId, pod);
  const before = await findRecord(writing, jobId);
  if (begun !== undefined || before === undefined) return begun;
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

interface NewAttempt {
  readonly part: JobPart | null;
  readonly columns: Partial<Insertable<Schema["attempts"]>>;
}

async function beginAttempt(
  writing: WriteTransaction,
  jobId: string,
  newAttempt: NewAttempt,
): Promise<JobRecord | undefined> {
  const { part } = newAttempt;
  const before = await findRecord(writing, jobId);
  if (before === undefined || isTerminal(before.job.status) || before.job.status === "Cancelling")
    return undefined;
  const attempt = before.attempt + 1;
  const attempts = await findAttempts(writing.trx, jobId);
  const isRestart = attempts.some(
    (other) => other.part?.step === part?.step && other.part?.index === part?.index,
  );
  const begun = { ...before, attempt };
  const after = isRestart ? await restartRecord(writing, begun, part) : begun;
  await insertAttempt(writing, after, newAttempt);
  await saveRecords(writing, [{ before, after }]);
  return after;
}

async function insertAttempt(
  writing: WriteTransaction,
  { job, attempt }: JobRecord,
  { columns }: NewAttempt,
): Promise<void> {
  const begun = {
    job_id: job.id,
    attempt,
    progress: 0,
    next_seq: 1,
    started_at: writing.now.toISOString(),
  };
  await writing.trx
    .insertInto("attempts")
    .values({ ...begun, ...columns })
    .execute();
}

async function restartRecord(
  writing: WriteTransaction,
  record: JobRecord,
  part: JobPart | null,
): Promise<JobRecord> {
  const share = part?.step === "optimize" ? ` share ${part.index + 1}` : "";
  const why =
    record.resource === null
      ? "The service restarted while the job ran"
      : `Another pod takes over${share}`;
  const text = `${why}: attempt ${record.attempt} begins`;
  const logged = await appendLines(writing, record, [
    { stream: "stderr", text, at: writing.now.toISOString() },
  ]);
  return { ...logged, job: applyEvents(logged, restartEvents(logged.job, part), writing.now) };
}

async function endAttempt(
  writing: WriteTransaction,
  ended: { jobId: string; attempt: number; end: AttemptEnd },
): Promise<void> {
  const { jobId, end } = ended;
  const attempts = await findAttempts(writing.trx, jobId);
  const attempt = attempts.find((one) => one.attempt === ended.attempt && !one.ended);
  if (attempt === undefined) return;
  const at = writing.now.toISOString();
  await writing.trx
    .updateTable("attempts")
    .set({ ended_at: at })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt.attempt)
    .execute();
  const before = await findRecord(writing, jobId);
  // Whoever has seen a job's end has seen all of its lines.
  if (before === undefined || isTerminal(before.job.status)) return;
  const lines = end.lines.map((line) => ({ ...line, at }));
  const logged = await appendLines(writing, before, lines);
  const events: JobEvent[] = before.live ? [] : [{ type: "stopped" }];
  if (end.error !== null && currentAttempts(attempts).includes(attempt)) {
    events.push({ type: "failure", error: end.error });
  }
  await saveRecords(writing, [
    { before, after: { ...logged, job: applyEvents(logged, events, writing.now) } },
  ]);
}

function applyEvents(record: JobRecord, events: readonly JobEvent[], now: Date) {
  return events.reduce((job, event) => applyEvent(job, event, now), record.job);
}
