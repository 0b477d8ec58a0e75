import type { Insertable } from "kysely";
import { applyEvents, type JobEvent } from "./apply-event.ts";
import {
  type AttemptRecord,
  currentAttempts,
  findAttempts,
  type JobPart,
} from "./find-attempts.ts";
import { findRecord, type JobRecord } from "./find-record.ts";
import { appendLines } from "./log-records.ts";
import { saveRecords } from "./save-records.ts";
import { restartEvents } from "./translate-part-event.ts";
import type { JobError } from "../../contract/errors.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { splitLogLines } from "../../contract/jobs/split-log-lines.ts";
import { statusCause } from "../../contract/jobs/status-reasons.ts";
import { isTerminal, liveStatuses } from "../../contract/jobs/status.ts";
import type { ProcessIdentity } from "../database/replica.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

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

/** What ends a local worker that is not its job's fault, as the job's log says it. */
const disruptions = {
  service_killed: "The service died while the worker ran",
  service_stopped: "The service was stopped while the worker ran",
  preempted: "The worker was stopped, preempted by a project that had waited too long",
} as const;

export type Disruption = keyof typeof disruptions;

/** How an attempt ended besides what its worker reported. */
interface AttemptEnd {
  /**
   * The job's error unless it has ended or is being cancelled; null where the end of an attempt
   * does not end the job.
   */
  readonly error: JobError | null;
  /** Output that the worker did not report. */
  readonly lines: readonly Pick<LogLine, "stream" | "text">[];
  /** What ended the worker, where that is not the job's fault. */
  readonly disruption?: Disruption | undefined;
}

/** A local job that had not ended when the service stopped. */
export interface UnfinishedJob {
  readonly project: string;
  readonly jobId: string;
  readonly attempt: number;
  /** Whether the end of the last attempt is not recorded. */
  readonly live: boolean;
  readonly process: ProcessIdentity | null;
  /** Number of the replica whose attempt it was; null for those from before there were replicas. */
  readonly replica: number | null;
}

/** Attempts at jobs; each is the work of one process or pod. */
export function attemptRecords(store: Store) {
  const { db } = store;
  return {
    /**
     * Starts the next attempt, of a local process; undefined where the job needs no worker, or has
     * one. Idempotent per secret.
     */
    begin: (jobId: string, secretHash: string): Promise<StartedAttempt | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const { trx, replica, effects } = writing;
        const running = await trx
          .selectFrom("attempts")
          .select("secret_hash")
          .where("job_id", "=", jobId)
          .where("ended_at", "is", null)
          .executeTakeFirst();
        // Begun before, by a transaction whose answer was lost, or by another replica.
        if (running !== undefined && running.secret_hash !== secretHash) return undefined;
        const columns = { secret_hash: secretHash, replica: replica.id };
        const record = running
          ? await findRecord(writing, jobId)
          : await beginAttempt(writing, jobId, { part: null, columns, starts: true });
        if (record === undefined) return undefined;
        effects.begun.add(jobId);
        const { attempt, job } = record;
        const failed = (await findAttempts(trx, jobId)).filter(isFailed);
        return { attempt, failedAttempts: failed.length, deadlineSeconds: job.deadlineSeconds };
      }),

    /**
     * Number of the pod's attempt, which starts when the pod is first seen; undefined where the job
     * needs no worker. Pods with different parts work on a job at the same time.
     */
    beginPodAttempt: (jobId: string, pod: AttemptPod) =>
      runWriteTransaction(store, (writing) => beginPodAttempt(writing, jobId, pod)),

    /**
     * Number of the pod's attempt, also of a pod that never asked for its assignment and whose job
     * has ended.
     */
    ensurePodAttempt: (jobId: string, pod: AttemptPod): Promise<number | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const attempt = await beginPodAttempt(writing, jobId, pod);
        const before = await findRecord(writing, jobId);
        if (attempt !== undefined || before === undefined) return attempt;
        const after = { ...before, attempt: before.attempt + 1 };
        await insertAttempt(writing, after, newPodAttempt(pod));
        await saveRecords(writing, [{ before, after }]);
        return after.attempt;
      }),

    async findPodAttempt(jobId: string, podUid: string) {
      const row = await db
        .selectFrom("attempts")
        .select(["attempt", "next_seq", "ended_at"])
        .where("job_id", "=", jobId)
        .where("pod_uid", "=", podUid)
        .executeTakeFirst();
      return row && { attempt: row.attempt, nextSeq: row.next_seq, ended: row.ended_at !== null };
    },

    /** Attempts in pods that have not ended, of one job or of all. */
    async listLivePods(ofJob?: string) {
      let live = db.selectFrom("attempts").where("ended_at", "is", null);
      if (ofJob !== undefined) live = live.where("job_id", "=", ofJob);
      const rows = await live.select(["job_id", "attempt", "pod_uid"]).orderBy("job_id").execute();
      return rows.flatMap(({ job_id: jobId, attempt, pod_uid: podUid }) =>
        podUid === null ? [] : [{ jobId, attempt, podUid }],
      );
    },

    async recordProcess(
      jobId: string,
      attempt: number,
      { pid, startMark }: ProcessIdentity,
    ): Promise<void> {
      await db
        .updateTable("attempts")
        .set({ pid, start_mark: startMark })
        .where("job_id", "=", jobId)
        .where("attempt", "=", attempt)
        .execute();
    },

    /** Ends an attempt whose process no longer runs, and records what that means for the job. */
    end: (jobId: string, number: number, { error, lines, disruption }: AttemptEnd) =>
      runWriteTransaction(store, async (writing) => {
        const { trx, now, effects } = writing;
        const at = now.toISOString();
        const attempts = await findAttempts(trx, jobId);
        const attempt = attempts.find((one) => one.attempt === number && one.endedAt === null);
        if (attempt === undefined) return;
        await trx
          .updateTable("attempts")
          .set({ ended_at: at, disruption: disruption ?? null })
          .where("job_id", "=", jobId)
          .where("attempt", "=", number)
          .execute();
        const before = await findRecord(writing, jobId);
        // A reader that has seen the job's end has read its whole log: no line follows.
        if (before === undefined || isTerminal(before.job.status)) return;
        // What a worker's process printed besides its events is of any form.
        const last = lines.flatMap(({ stream, text }) =>
          splitLogLines(text).map((line) => ({ stream, text: line, at })),
        );
        if (disruption) last.push({ stream: "stderr", text: disruptions[disruption], at });
        const logged = await appendLines(writing, before, last);
        const events: JobEvent[] = before.live ? [] : [{ type: "stopped" }];
        if (disruption === "preempted") {
          events.push({ type: "waiting", interrupts: true, ...statusCause("interrupted") });
        }
        if (error !== null && currentAttempts(attempts).includes(attempt)) {
          events.push({ type: "failure", error });
        }
        const after = { ...logged, job: applyEvents(logged.job, events, now) };
        await saveRecords(writing, [{ before, after }]);
        if (!isTerminal(after.job.status)) effects.waiting.add(jobId);
      }),

    /** How many attempts at the job a disruption has ended. */
    async countDisrupted(jobId: string, disruption: Disruption): Promise<number> {
      const rows = await db
        .selectFrom("attempts")
        .select("attempt")
        .where("job_id", "=", jobId)
        .where("disruption", "=", disruption)
        .execute();
      return rows.length;
    },

    /** Jobs without a custom resource that have not ended, in the order of their creation. */
    async listUnfinished(): Promise<UnfinishedJob[]> {
      return (await selectLocalJobs(db).execute()).map(parseUnfinishedRow);
    },

    /** Those of the jobs without a custom resource that wait for a worker. */
    async listWaiting(jobIds: readonly string[]): Promise<{ project: string; jobId: string }[]> {
      const rows = await selectLocalJobs(db).where("jobs.id", "in", jobIds).execute();
      return rows.map(parseUnfinishedRow).filter(({ live }) => !live);
    },

    /** Jobs without a custom resource whose last attempt, a process of a replica, has not ended. */
    async listLiveProcesses(): Promise<UnfinishedJob[]> {
      const rows = await db
        .selectFrom("attempts")
        .innerJoin("jobs", (join) =>
          join
            .onRef("jobs.id", "=", "attempts.job_id")
            .onRef("jobs.attempt", "=", "attempts.attempt"),
        )
        .where("attempts.ended_at", "is", null)
        .where("jobs.status", "in", liveStatuses)
        .where("jobs.resource", "is", null)
        .orderBy("jobs.id")
        .select(unfinishedColumns)
        .execute();
      return rows.map(parseUnfinishedRow);
    },
  };
}

interface NewAttempt {
  readonly part: JobPart | null;
  /** Whether the job's reason says so: that of a resource is the operator's. */
  readonly starts?: true;
  readonly columns: Partial<Insertable<Schema["attempts"]>>;
}

function isFailed({ endedAt, wasDisrupted }: AttemptRecord): boolean {
  return endedAt !== null && !wasDisrupted;
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
  const after = newAttempt.starts ? markStarting(restarted) : restarted;
  await insertAttempt(writing, after, newAttempt);
  await saveRecords(writing, [{ before, after }]);
  return after;
}

/** Says that the worker is starting, so that the job does not look stuck. */
function markStarting(record: JobRecord): JobRecord {
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

const unfinishedColumns = [
  "jobs.id",
  "jobs.project",
  "jobs.attempt",
  "started_at",
  "ended_at",
  "pid",
  "start_mark",
  "replica",
] as const;

/** Jobs without a custom resource that have not ended, each with its last attempt. */
function selectLocalJobs(db: Store["db"]) {
  return db
    .selectFrom("jobs")
    .leftJoin("attempts", (join) =>
      join.onRef("attempts.job_id", "=", "jobs.id").onRef("attempts.attempt", "=", "jobs.attempt"),
    )
    .where("jobs.status", "in", liveStatuses)
    .where("jobs.resource", "is", null)
    .orderBy("jobs.id")
    .select(unfinishedColumns);
}

type UnfinishedRow = Pick<Schema["jobs"], "id" | "project" | "attempt"> &
  Pick<Schema["attempts"], "ended_at" | "pid" | "start_mark" | "replica"> & {
    readonly started_at: string | null;
  };

function parseUnfinishedRow(row: UnfinishedRow): UnfinishedJob {
  const { id: jobId, project, attempt, pid, start_mark: startMark, replica } = row;
  const live = row.started_at !== null && row.ended_at === null;
  const process = pid === null || startMark === null ? null : { pid, startMark };
  return { jobId, project, attempt, live, process, replica };
}
