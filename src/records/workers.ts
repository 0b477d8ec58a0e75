import type { LogLine } from "../contract/log.ts";
import { isTerminal } from "../contract/status.ts";
import { target } from "../contract/target.ts";
import { type Assignment, type OptimizedShare, optimizedShare, type WorkerEvent } from "../contract/worker.ts";
import { applyEvent } from "./apply-event.ts";
import { type AttemptRecord, currentAttempts, findAttempts, type Part } from "./attempt-record.ts";
import { appendLines, findRecord, type JobRecord, parseJob, saveRecords } from "./job-record.ts";
import { partEvent } from "./part-event.ts";
import { type Store, write, type Writing } from "./store.ts";

type NewAssignment = Omit<Assignment, "limits">;

/** What a worker is answered to its events. */
interface Heard {
  readonly nextSeq: number;
  /** The worker is to stop. */
  readonly cancelled: boolean;
}

interface Told {
  readonly jobId: string;
  readonly attempt: number;
  readonly events: readonly WorkerEvent[];
  /** Whether events that are missing are lost for good. */
  readonly isRest: boolean;
}

export function workerRecords(store: Store) {
  return {
    /** The attempt that a worker's secret belongs to. */
    async attemptOf(jobId: string, secretHash: string): Promise<number | undefined> {
      const row = await store.db
        .selectFrom("attempts")
        .select("attempt")
        .where("job_id", "=", jobId)
        .where("secret_hash", "=", secretHash)
        .executeTakeFirst();
      return row?.attempt;
    },

    /** What the worker of an attempt is to do; undefined where nothing, since the job or the attempt is over. */
    async assignment(jobId: string, attempt: number): Promise<NewAssignment | undefined> {
      return store.db.transaction().execute((trx) => findAssignment(trx, jobId, attempt));
    },

    /**
     * Records what a worker tells. Events told before are ignored, and so is everything after a gap: the answer says which
     * event is waited for. Of a worker whose attempt is over, the lines are recorded that are missing, and it is told to
     * stop; what else it tells counts only while nobody has taken its place and the job has not ended.
     */
    apply(jobId: string, attempt: number, events: readonly WorkerEvent[]): Promise<Heard> {
      return write(store, (writing) => applyTold(writing, { jobId, attempt, events, isRest: false }));
    },

    /** Records what can still be known of a worker that is gone, such as from its pod's log: gaps stay gaps. */
    capture(jobId: string, attempt: number, events: readonly WorkerEvent[]): Promise<Heard> {
      return write(store, (writing) => applyTold(writing, { jobId, attempt, events, isRest: true }));
    },
  };
}

async function findAssignment(trx: Writing["trx"], jobId: string, number: number): Promise<NewAssignment | undefined> {
  const row = await trx.selectFrom("jobs").selectAll().where("id", "=", jobId).executeTakeFirst();
  if (row === undefined) return undefined;
  const job = parseJob(row.document);
  const attempt = currentAttempts(await findAttempts(trx, jobId)).find((current) => current.attempt === number);
  if (attempt === undefined || attempt.ended || isTerminal(job.status)) return undefined;
  const { id, kind, recipe, dryRun } = job;
  const shares = attempt.part?.step === "assemble" ? await sharesOf(trx, jobId) : [];
  return {
    id,
    kind,
    recipe,
    dryRun,
    model: modelFor(attempt.part, job.model),
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
function modelFor(part: Part | null, model: KnownModel): Assignment["model"] {
  const { source, name, sha256, actualSha256 } = model;
  if (part === null || part.step === "shard" || actualSha256 === null) {
    return { source, name, ...(sha256 !== undefined && { sha256 }) };
  }
  const isAtHand = source.startsWith("file:");
  return { source: isAtHand ? source : `upload:sha256:${actualSha256}`, name, sha256: actualSha256 };
}

async function sharesOf(trx: Writing["trx"], jobId: string): Promise<OptimizedShare[]> {
  const rows = await trx
    .selectFrom("job_shares")
    .select(["share as index", "sha256", "bytes"])
    .where("job_id", "=", jobId)
    .orderBy("share")
    .execute();
  return rows.map((row) => optimizedShare.parse(row));
}

async function applyTold(writing: Writing, told: Told): Promise<Heard> {
  const { jobId, attempt: number } = told;
  const before = await findRecord(writing, jobId);
  const attempts = await findAttempts(writing.trx, jobId);
  const attempt = attempts.find((one) => one.attempt === number);
  if (before === undefined || attempt === undefined) return { nextSeq: 1, cancelled: true };
  const isCurrent = currentAttempts(attempts).includes(attempt);
  const folded = fold(before, { attempt, attempts, isCurrent }, { ...told, now: writing.now });
  if (folded.attempt.nextSeq > attempt.nextSeq) {
    await saveAttempt(writing, jobId, folded.attempt);
    for (const share of folded.shares) await saveShare(writing, jobId, share);
    const after = await appendLines(writing, { ...before, job: folded.job }, folded.lines);
    await saveRecords(writing, [{ before, after }]);
  }
  const isStopped = ["Cancelling", "Cancelled"].includes(folded.job.status) || isTerminal(before.job.status);
  return { nextSeq: folded.attempt.nextSeq, cancelled: isStopped || !isCurrent || attempt.ended };
}

interface Teller {
  readonly attempt: AttemptRecord;
  readonly attempts: readonly AttemptRecord[];
  readonly isCurrent: boolean;
}

function fold(
  before: JobRecord,
  { attempt: teller, attempts, isCurrent }: Teller,
  { events, isRest, now }: Pick<Told, "events" | "isRest"> & { readonly now: Date },
) {
  const lines: Omit<LogLine, "seq">[] = [];
  const shares: OptimizedShare[] = [];
  let { job } = before;
  let attempt = teller;
  for (const event of events) {
    if (event.seq < attempt.nextSeq) continue;
    if (event.seq > attempt.nextSeq) {
      if (!isRest) break;
      lines.push(lossLine(event.seq - attempt.nextSeq, event.at));
    }
    attempt = { ...attempt, nextSeq: event.seq + 1, progress: progressAfter(event) ?? attempt.progress };
    if (event.type === "log") lines.push({ at: event.at, stream: event.stream, text: event.text });
    if (!isCurrent) continue;
    const { part } = attempt;
    if (event.type === "share" && event.share.index === part?.index) shares.push(event.share);
    const known = attempts.map((one) => (one.attempt === attempt.attempt ? attempt : one));
    job = applyEvent(job, part === null ? event : partEvent(event, part, { job, attempts: known }), now);
  }
  return { job, attempt, lines, shares };
}

function lossLine(count: number, at: string): Omit<LogLine, "seq"> {
  const events = count === 1 ? "1 event" : `${count} events`;
  return { at, stream: "stderr", text: `(${events} of the worker were lost while the service could not be reached)` };
}

function progressAfter(event: WorkerEvent): number | undefined {
  if (event.type === "telemetry") return event.telemetry.progress?.fraction;
  return event.type === "result" && event.outcome === "Completed" ? 1 : undefined;
}

async function saveAttempt(
  writing: Writing,
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

async function saveShare(writing: Writing, jobId: string, { index, sha256, bytes }: OptimizedShare): Promise<void> {
  await writing.trx
    .insertInto("job_shares")
    .values({ job_id: jobId, share: index, sha256, bytes })
    .onConflict((conflict) => conflict.columns(["job_id", "share"]).doUpdateSet({ sha256, bytes }))
    .execute();
}
