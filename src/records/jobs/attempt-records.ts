import { appendLines } from "./append-lines.ts";
import { applyEvents, type JobEvent } from "./apply-event.ts";
import {
  type AttemptPod,
  beginLocalAttempt,
  beginPodAttempt,
  ensurePodAttempt,
} from "./begin-attempt.ts";
import { currentAttempts, findAttempts } from "./find-attempts.ts";
import { findRecord } from "./find-record.ts";
import {
  listLiveProcesses,
  listUnfinishedLocalJobs,
  listWaitingJobs,
} from "./list-unfinished-jobs.ts";
import { saveRecords } from "./save-records.ts";
import type { JobError } from "../../contract/errors.ts";
import type { LogLine } from "../../contract/jobs/log.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { ProcessIdentity } from "../database/replica.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** An attempt in a pod. */
interface PodAttempt {
  readonly jobId: string;
  readonly attempt: number;
  readonly podUid: string;
}

/** Attempts at jobs; each is the work of one process or pod. */
export function attemptRecords(store: Store) {
  return {
    /**
     * Starts the next attempt, of a local process; undefined where the job needs no worker, or has
     * one. An attempt that was started with the same secret is the same one.
     */
    begin: (jobId: string, secretHash: string) =>
      runWriteTransaction(store, (writing) => beginLocalAttempt(writing, jobId, secretHash)),

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
    ensurePodAttempt: (jobId: string, pod: AttemptPod) =>
      runWriteTransaction(store, (writing) => ensurePodAttempt(writing, jobId, pod)),

    findPodAttempt: (jobId: string, podUid: string) => findPodAttempt(store, jobId, podUid),

    /** Attempts in pods that have not ended, of one job or of all. */
    listLivePods: (jobId?: string) => listLivePods(store, jobId),

    recordProcess: (jobId: string, attempt: number, identity: ProcessIdentity) =>
      recordProcess(store, { jobId, attempt }, identity),

    /** Ends an attempt of which no process runs any more. */
    end: (jobId: string, attempt: number, end: AttemptEnd) =>
      runWriteTransaction(store, (writing) => endAttempt(writing, { jobId, attempt, ...end })),

    /** How many attempts at the job a disruption has ended. */
    countDisrupted: (jobId: string, disruption: Disruption) =>
      countDisrupted(store, jobId, disruption),

    /** Jobs without a custom resource that have not ended, in the order of their creation. */
    listUnfinished: () => listUnfinishedLocalJobs(store),

    /** Those of the jobs without a custom resource that wait for a worker. */
    listWaiting: (jobIds: readonly string[]) => listWaitingJobs(store, jobIds),

    /** Attempts of processes that replicas have begun and not ended. */
    listLiveProcesses: () => listLiveProcesses(store),
  };
}

async function findPodAttempt({ db }: Store, jobId: string, podUid: string) {
  const row = await db
    .selectFrom("attempts")
    .select(["attempt", "next_seq", "ended_at"])
    .where("job_id", "=", jobId)
    .where("pod_uid", "=", podUid)
    .executeTakeFirst();
  return row && { attempt: row.attempt, nextSeq: row.next_seq, ended: row.ended_at !== null };
}

async function listLivePods({ db }: Store, ofJob: string | undefined): Promise<PodAttempt[]> {
  let live = db.selectFrom("attempts").where("ended_at", "is", null);
  if (ofJob !== undefined) live = live.where("job_id", "=", ofJob);
  const rows = await live.select(["job_id", "attempt", "pod_uid"]).orderBy("job_id").execute();
  return rows.flatMap(({ job_id: jobId, attempt, pod_uid: podUid }) =>
    podUid === null ? [] : [{ jobId, attempt, podUid }],
  );
}

async function countDisrupted(
  { db }: Store,
  jobId: string,
  disruption: Disruption,
): Promise<number> {
  const rows = await db
    .selectFrom("attempts")
    .select("attempt")
    .where("job_id", "=", jobId)
    .where("disruption", "=", disruption)
    .execute();
  return rows.length;
}

async function recordProcess(
  { db }: Store,
  { jobId, attempt }: { readonly jobId: string; readonly attempt: number },
  { pid, startMark }: ProcessIdentity,
): Promise<void> {
  await db
    .updateTable("attempts")
    .set({ pid, start_mark: startMark })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt)
    .execute();
}

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

interface EndedAttempt extends AttemptEnd {
  readonly jobId: string;
  readonly attempt: number;
}

/** Records the end of an attempt, and what it means for the job. */
async function endAttempt(writing: WriteTransaction, ended: EndedAttempt): Promise<void> {
  const { jobId, error } = ended;
  const attempts = await findAttempts(writing.trx, jobId);
  const attempt = attempts.find((one) => one.attempt === ended.attempt && one.endedAt === null);
  if (attempt === undefined) return;
  const { disruption = null } = ended;
  await setEnd(writing, { jobId, attempt: attempt.attempt, disruption });
  const before = await findRecord(writing, jobId);
  // A reader that has seen the job's end has read its whole log: no line follows.
  if (before === undefined || isTerminal(before.job.status)) return;
  const at = writing.now.toISOString();
  const lines = [...ended.lines, ...describeDisruption(disruption)].map((line) => ({
    ...line,
    at,
  }));
  const logged = await appendLines(writing, before, lines);
  const events: JobEvent[] = before.live ? [] : [{ type: "stopped" }];
  if (error !== null && currentAttempts(attempts).includes(attempt)) {
    events.push({ type: "failure", error });
  }
  const after = { ...logged, job: applyEvents(logged.job, events, writing.now) };
  await saveRecords(writing, [{ before, after }]);
  if (!isTerminal(after.job.status)) writing.effects.waiting.add(jobId);
}

function describeDisruption(disruption: Disruption | null): AttemptEnd["lines"] {
  return disruption === null ? [] : [{ stream: "stderr", text: disruptions[disruption] }];
}

interface RecordedEnd {
  readonly jobId: string;
  readonly attempt: number;
  readonly disruption: Disruption | null;
}

async function setEnd(
  { trx, now }: WriteTransaction,
  { jobId, attempt, disruption }: RecordedEnd,
): Promise<void> {
  await trx
    .updateTable("attempts")
    .set({ ended_at: now.toISOString(), disruption })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt)
    .execute();
}

/** What ends a local worker that is not its job's fault, as the job's log says it. */
const disruptions = {
  service_killed: "The service died while the worker ran",
  service_stopped: "The service was stopped while the worker ran",
} as const;

type Disruption = keyof typeof disruptions;
