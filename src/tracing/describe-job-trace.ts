import type { Attributes } from "@opentelemetry/api";
import type { Job } from "../contract/jobs/job.ts";
import type { AttemptRecord } from "../records/jobs/find-attempts.ts";
import type { TracedJob } from "../records/jobs/trace-records.ts";

/** A span of something that is over. Times are milliseconds since 1970. */
export interface DescribedSpan {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  /** Code of the error that it ended with. */
  readonly error?: string | undefined;
  readonly events?: readonly SpanEvent[];
  /** A span before it that this one repeats. */
  readonly repeats?: DescribedSpan | undefined;
  readonly children: readonly DescribedSpan[];
}

interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}

/** The spans of a job that has ended: its waiting, and its attempts with their stages. */
export function describeJobTrace({ project, job, attempts }: TracedJob): DescribedSpan {
  const [start, end] = [Date.parse(job.createdAt), Date.parse(job.finishedAt ?? job.updatedAt)];
  const limits = { start, end };
  return {
    name: `${job.kind} job`,
    ...limits,
    attributes: jobAttributes(project, job),
    error: job.status === "Failed" ? job.statusReason : undefined,
    events: job.transitions.map(({ status, at, reason }) => {
      return { name: status, at: Date.parse(at), attributes: { "mos.status_reason": reason } };
    }),
    children: [...describeStatuses(job, attempts), ...describeAttempts(attempts, limits)].toSorted(
      (one, other) => one.start - other.start,
    ),
  };
}

/** Nothing in them is a secret: sources of models can be, and are left out. */
function jobAttributes(project: string, job: Job): Attributes {
  return {
    "mos.project": project,
    "mos.job.id": job.id,
    "mos.job.kind": job.kind,
    "mos.batch.id": job.batchId ?? undefined,
    "mos.target": job.target,
    "mos.model.sha256": job.model.actualSha256 ?? job.model.sha256,
    "mos.status": job.status,
    "mos.status_reason": job.statusReason,
  };
}

/** When the job waited for a worker, and when for the end of one after it was cancelled. */
function describeStatuses({ transitions }: Job, attempts: readonly AttemptRecord[]) {
  return transitions.flatMap(({ status, at }, index): DescribedSpan[] => {
    const next = transitions[index + 1];
    if (next === undefined) return [];
    const span = { start: Date.parse(at), end: Date.parse(next.at), attributes: {}, children: [] };
    if (status === "Cancelling") return [{ ...span, name: "cancel" }];
    if (status !== "Pending") return [];
    const begun = attempts.map(({ startedAt }) => Date.parse(startedAt));
    const end = Math.min(span.end, ...begun.filter((time) => time >= span.start));
    return [{ ...span, name: "wait", end }];
  });
}

type Limits = Pick<DescribedSpan, "start" | "end">;

function describeAttempts(attempts: readonly AttemptRecord[], job: Limits): DescribedSpan[] {
  const spans: DescribedSpan[] = [];
  for (const [index, attempt] of attempts.entries()) {
    const repeated = attempts.slice(0, index).findLastIndex((other) => isSamePart(attempt, other));
    spans.push(describeAttempt(attempt, job, spans[repeated]));
  }
  return spans;
}

function isSamePart({ part }: AttemptRecord, { part: other }: AttemptRecord): boolean {
  return part?.step === other?.step && part?.index === other?.index;
}

function describeAttempt(
  { attempt, part, startedAt, endedAt, stages }: AttemptRecord,
  job: Limits,
  repeats: DescribedSpan | undefined,
): DescribedSpan {
  const start = keepWithin(Date.parse(startedAt), job);
  const end = Math.max(start, keepWithin(endedAt === null ? job.end : Date.parse(endedAt), job));
  return {
    name: part === null ? "attempt" : `attempt ${part.step}`,
    start,
    end,
    attributes: { "mos.attempt": attempt, "mos.share": part?.index },
    repeats,
    children: stages.map(({ name, seconds, endedAt: at }) => {
      const stageEnd = keepWithin(Date.parse(at), { start, end });
      const stageStart = keepWithin(stageEnd - seconds * 1000, { start, end });
      return { name, start: stageStart, end: stageEnd, attributes: {}, children: [] };
    }),
  };
}

/** Times of workers are by their own clocks. */
function keepWithin(time: number, { start, end }: Limits): number {
  return Math.min(Math.max(time, start), end);
}
