import type { LogLine } from "../contract/log.ts";
import { isTerminal } from "../contract/status.ts";
import { target } from "../contract/target.ts";
import {
  type Assignment,
  type OptimizedShare,
  optimizedShare,
  type WorkerEvent,
} from "../contract/worker.ts";
import { applyEvent } from "./apply-event.ts";
import {
  type AttemptRecord,
  currentAttempts,
  findAttempts,
  type JobPart,
} from "./find-attempts.ts";
import {
  appendLines,
  findRecord,
  type JobRecord,
  parseJob,
  saveRecords,
} from "./save-job-records.ts";
import { translatePartEvent } from "./translate-part-event.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

type NewAssignment = Omit<Assignment, "limits">;

/** What a worker is answered to its events. */
interface EventsAcknowledgement {
  readonly nextSeq: number;
  /** The worker is to stop. */
  readonly cancelled: boolean;
}

interface ReportedEvents {
  readonly jobId: string;
  readonly attempt: number;
  readonly events: readonly WorkerEvent[];
  /** Whether events that are missing are lost for good. */
  readonly isFinal: boolean;
}

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

    /** What the worker of an attempt is to do; undefined where nothing, since the job or the attempt is over. */
    async findAssignment(jobId: string, attempt: number): Promise<NewAssignment | undefined> {
      return store.db.transaction().execute((trx) => findAssignment(trx, jobId, attempt));
    },

    /**
     * Records what a worker tells. Events told before are ignored, and so is everything after a gap: the answer says which
     * event is waited for. Of a worker whose attempt is over, the lines are recorded that are missing, and it is told to
     * stop; what else it tells counts only while nobody has taken its place and the job has not ended.
     */
    recordEvents(
      jobId: string,
      attempt: number,
      events: readonly WorkerEvent[],
    ): Promise<EventsAcknowledgement> {
      return runWriteTransaction(store, (writing) =>
        applyReportedEvents(writing, { jobId, attempt, events, isFinal: false }),
      );
    },

    /** Records what can still be known of a worker that is gone, such as from its pod's log: gaps stay gaps. */
    recordFinalEvents(
      jobId: string,
      attempt: number,
      events: readonly WorkerEvent[],
    ): Promise<EventsAcknowledgement> {
      return runWriteTransaction(store, (writing) =>
        applyReportedEvents(writing, { jobId, attempt, events, isFinal: true }),
      );
    },
  };
}

async function findAssignment(
  trx: WriteTransaction["trx"],
  jobId: string,
  number: number,
): Promise<NewAssignment | undefined> {
  const row = await trx.selectFrom("jobs").selectAll().where("id", "=", jobId).executeTakeFirst();
  if (row === undefined) return undefined;
  const job = parseJob(row.document);
  const attempt = currentAttempts(await findAttempts(trx, jobId)).find(
    (current) => current.attempt === number,
  );
  if (attempt === undefined || attempt.ended || isTerminal(job.status)) return undefined;
  const { id, kind, recipe, dryRun } = job;
  const shares = attempt.part?.step === "assemble" ? await listOptimizedShares(trx, jobId) : [];
  return {
    id,
    kind,
    recipe,
    dryRun,
    model: assignedModel(attempt.part, job.model),
    target: target.parse(JSON.parse(row.target_document)),
    attempt: number,
    part: attempt.part && { ...attempt.part, shares },
  };
}

interface KnownModel {
  readonly source: string;
  readonly name: string;
  readonly sha256?: string | undefined;
  readonly actualSha256: string | null;
}

/** Later steps work on the very file that was sharded, which lies in the store unless the workers have it at hand. */
function assignedModel(part: JobPart | null, model: KnownModel): Assignment["model"] {
  const { source, name, sha256, actualSha256 } = model;
  if (part === null || part.step === "shard" || actualSha256 === null) {
    return { source, name, ...(sha256 !== undefined && { sha256 }) };
  }
  const isAtHand = source.startsWith("file:");
  return {
    source: isAtHand ? source : `upload:sha256:${actualSha256}`,
    name,
    sha256: actualSha256,
  };
}

async function listOptimizedShares(
  trx: WriteTransaction["trx"],
  jobId: string,
): Promise<OptimizedShare[]> {
  const rows = await trx
    .selectFrom("job_shares")
    .select(["share as index", "sha256", "bytes"])
    .where("job_id", "=", jobId)
    .orderBy("share")
    .execute();
  return rows.map((row) => optimizedShare.parse(row));
}

async function applyReportedEvents(
  writing: WriteTransaction,
  reported: ReportedEvents,
): Promise<EventsAcknowledgement> {
  const { jobId, attempt: number } = reported;
  const before = await findRecord(writing, jobId);
  const attempts = await findAttempts(writing.trx, jobId);
  const attempt = attempts.find((one) => one.attempt === number);
  if (before === undefined || attempt === undefined) return { nextSeq: 1, cancelled: true };
  const isCurrent = currentAttempts(attempts).includes(attempt);
  const applied = applyNewEvents(
    before,
    { attempt, attempts, isCurrent },
    { ...reported, now: writing.now },
  );
  if (applied.attempt.nextSeq > attempt.nextSeq) {
    await saveAttempt(writing, jobId, applied.attempt);
    for (const share of applied.shares) await saveShare(writing, jobId, share);
    const after = await appendLines(writing, { ...before, job: applied.job }, applied.lines);
    await saveRecords(writing, [{ before, after }]);
  }
  const isStopped =
    ["Cancelling", "Cancelled"].includes(applied.job.status) || isTerminal(before.job.status);
  return { nextSeq: applied.attempt.nextSeq, cancelled: isStopped || !isCurrent || attempt.ended };
}

interface ReportingAttempt {
  readonly attempt: AttemptRecord;
  readonly attempts: readonly AttemptRecord[];
  readonly isCurrent: boolean;
}

function applyNewEvents(
  before: JobRecord,
  { attempt: initialAttempt, attempts, isCurrent }: ReportingAttempt,
  { events, isFinal, now }: Pick<ReportedEvents, "events" | "isFinal"> & { readonly now: Date },
) {
  const lines: Omit<LogLine, "seq">[] = [];
  const shares: OptimizedShare[] = [];
  let { job } = before;
  let attempt = initialAttempt;
  for (const event of events) {
    if (event.seq < attempt.nextSeq) continue;
    if (event.seq > attempt.nextSeq) {
      if (!isFinal) break;
      lines.push(lostEventsLine(event.seq - attempt.nextSeq, event.at));
    }
    attempt = {
      ...attempt,
      nextSeq: event.seq + 1,
      progress: readProgress(event) ?? attempt.progress,
    };
    if (event.type === "log") lines.push({ at: event.at, stream: event.stream, text: event.text });
    if (!isCurrent) continue;
    const { part } = attempt;
    if (event.type === "share" && event.share.index === part?.index) shares.push(event.share);
    const known = attempts.map((one) => (one.attempt === attempt.attempt ? attempt : one));
    job = applyEvent(
      job,
      part === null ? event : translatePartEvent(event, part, { job, attempts: known }),
      now,
    );
  }
  return { job, attempt, lines, shares };
}

function lostEventsLine(count: number, at: string): Omit<LogLine, "seq"> {
  const events = count === 1 ? "1 event" : `${count} events`;
  return {
    at,
    stream: "stderr",
    text: `(${events} of the worker were lost while the service could not be reached)`,
  };
}

function readProgress(event: WorkerEvent): number | undefined {
  if (event.type === "telemetry") return event.telemetry.progress?.fraction;
  return event.type === "result" && event.outcome === "Completed" ? 1 : undefined;
}

async function saveAttempt(
  writing: WriteTransaction,
  jobId: string,
  { attempt, nextSeq, progress }: AttemptRecord,
): Promise<void> {
  await writing.trx
    .updateTable("attempts")
    .set({ next_seq: nextSeq, progress })
    .where("job_id", "=", jobId)
    .where("attempt", "=", attempt)
    .execute();
}

async function saveShare(
  writing: WriteTransaction,
  jobId: string,
  { index, sha256, bytes }: OptimizedShare,
): Promise<void> {
  await writing.trx
    .insertInto("job_shares")
    .values({ job_id: jobId, share: index, sha256, bytes })
    .onConflict((conflict) => conflict.columns(["job_id", "share"]).doUpdateSet({ sha256, bytes }))
    .execute();
}
