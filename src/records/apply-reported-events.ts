import type { Job } from "../contract/jobs/job.ts";
import type { LogLine } from "../contract/jobs/log.ts";
import type { ModelOutline, OptimizedShare, WorkerEvent } from "../contract/jobs/worker.ts";
import { applyEvent } from "./apply-event.ts";
import type { AttemptRecord } from "./find-attempts.ts";
import { addEndedStage } from "./recorded-stages.ts";
import { translatePartEvent } from "./translate-part-event.ts";

type NewLine = Omit<LogLine, "seq">;

interface ReportingAttempt {
  readonly job: Job;
  readonly attempt: AttemptRecord;
  /** All attempts at the job. */
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

interface EventSequence {
  readonly events: readonly WorkerEvent[];
  /** Whether missing events are lost; otherwise nothing after a gap counts. */
  readonly isFinal: boolean;
}

/** A job and its attempt after events. Of a replaced attempt only lines count. */
export function applyReportedEvents(
  { job: initialJob, attempt: initialAttempt, attempts, isCurrent }: ReportingAttempt,
  { events, isFinal }: EventSequence,
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
  const events = count === 1 ? "1 event of the worker was" : `${count} events of the worker were`;
  const text = `(${events} lost while the service could not be reached)`;
  return { at, stream: "stderr", text };
}

function readProgress(event: WorkerEvent): number | undefined {
  if (event.type === "telemetry") return event.telemetry.progress?.fraction;
  return event.type === "result" && event.outcome === "Completed" ? 1 : undefined;
}
