import type { JobError } from "../contract/errors.ts";
import type { LogLine } from "../contract/jobs/log.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { appendLines } from "./append-lines.ts";
import type { JobEvent } from "./apply-event.ts";
import { applyEvents } from "./apply-events.ts";
import { type Disruption, disruptions } from "./disruptions.ts";
import { currentAttempts, findAttempts } from "./find-attempts.ts";
import { findRecord } from "./find-record.ts";
import { saveRecords } from "./save-records.ts";
import type { WriteTransaction } from "./store.ts";

/** How an attempt ended besides what its worker reported. */
export interface AttemptEnd {
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
export async function endAttempt(writing: WriteTransaction, ended: EndedAttempt): Promise<void> {
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
