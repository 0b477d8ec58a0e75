import type { JobError } from "../contract/errors.ts";
import type { LogLine } from "../contract/log.ts";
import { isTerminal } from "../contract/status.ts";
import { applyEvent } from "./apply-event.ts";
import { findLiveRecord, findRecord, insertLines, type JobRecord, saveRecords } from "./job-record.ts";
import { type Store, write, type Writing } from "./store.ts";

/** A process, told apart from later ones with the same pid. */
export interface ProcessMark {
  readonly pid: number;
  readonly startMark: string;
}

/** How an attempt ended besides what its worker told. */
export interface AttemptEnd {
  /** What the job fails with unless it has ended or is being cancelled; null where it is to be taken up again. */
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
  readonly process: ProcessMark | null;
}

export function attemptRecords(store: Store) {
  return {
    /** Begins the next attempt and gives its number; undefined where the job is not to be worked on any more. */
    begin(jobId: string, secretHash: string): Promise<number | undefined> {
      return write(store, (writing) => beginAttempt(writing, jobId, secretHash));
    },

    async noteProcess(jobId: string, attempt: number, mark: ProcessMark): Promise<void> {
      await store.db
        .updateTable("attempts")
        .set({ pid: mark.pid, start_mark: mark.startMark })
        .where("job_id", "=", jobId)
        .where("attempt", "=", attempt)
        .execute();
    },

    /** No process of the attempt runs any more. */
    async end(jobId: string, attempt: number, end: AttemptEnd): Promise<void> {
      await write(store, (writing) => endAttempt(writing, { jobId, attempt, end }));
    },

    /** Jobs that have not ended, in the order in which they were made. */
    async unfinished(): Promise<UnfinishedJob[]> {
      const rows = await store.db
        .selectFrom("jobs")
        .leftJoin("attempts", (join) =>
          join.onRef("attempts.job_id", "=", "jobs.id").onRef("attempts.attempt", "=", "jobs.attempt"),
        )
        .select(["jobs.id", "jobs.attempt", "started_at", "ended_at", "pid", "start_mark"])
        .where("jobs.status", "in", ["Pending", "Sharding", "Optimizing", "Cancelling"])
        .orderBy("jobs.id")
        .execute();
      return rows.map((row) => ({
        jobId: row.id,
        attempt: row.attempt,
        live: row.started_at !== null && row.ended_at === null,
        process: row.pid === null || row.start_mark === null ? null : { pid: row.pid, startMark: row.start_mark },
      }));
    },
  };
}

async function beginAttempt(writing: Writing, jobId: string, secretHash: string): Promise<number | undefined> {
  const before = await findRecord(writing, jobId);
  if (before === undefined || isTerminal(before.job.status) || before.job.status === "Cancelling") return undefined;
  const attempt = before.attempt + 1;
  const begun = { ...before, attempt };
  const after = attempt === 1 ? begun : await restarted(writing, begun);
  await writing.trx
    .insertInto("attempts")
    .values({ job_id: jobId, attempt, secret_hash: secretHash, started_at: writing.now.toISOString() })
    .execute();
  await saveRecords(writing, [{ before, after }]);
  return attempt;
}

async function endAttempt(writing: Writing, ended: { jobId: string; attempt: number; end: AttemptEnd }): Promise<void> {
  const { jobId, attempt, end } = ended;
  const before = await findLiveRecord(writing, jobId, attempt);
  if (before === undefined) return;
  await writing.trx
    .updateTable("attempts")
    .set({ ended_at: writing.now.toISOString() })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt)
    .execute();
  // Whoever has seen a job's end has seen all of its lines.
  if (isTerminal(before.job.status)) return;
  const told = await appended(writing, before, end.lines);
  const stopped = applyEvent(told.job, { type: "stopped" }, writing.now);
  const job = end.error === null ? stopped : applyEvent(stopped, { type: "failure", error: end.error }, writing.now);
  await saveRecords(writing, [{ before, after: { ...told, job } }]);
}

async function restarted(writing: Writing, record: JobRecord): Promise<JobRecord> {
  const text = `The service restarted while the job ran: attempt ${record.attempt} begins`;
  const told = await appended(writing, record, [{ stream: "stderr", text }]);
  return { ...told, job: applyEvent(told.job, { type: "restart" }, writing.now) };
}

async function appended(writing: Writing, record: JobRecord, lines: AttemptEnd["lines"]): Promise<JobRecord> {
  const at = writing.now.toISOString();
  const numbered = lines.map((line, i) => ({ ...line, at, seq: record.nextLogSeq + i }));
  await insertLines(writing, record.job.id, numbered);
  return { ...record, nextLogSeq: record.nextLogSeq + lines.length };
}
