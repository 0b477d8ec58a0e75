import type { Job } from "../../contract/jobs/job.ts";
import { isTerminal, type JobStatus } from "../../contract/jobs/status.ts";

/** A part of a job's time. */
export interface JobSpan {
  readonly title: string;
  readonly tone: "wait" | "work" | "good" | "bad" | "off";
  /** Undefined for the end. */
  readonly ms: number | undefined;
  readonly at: number;
}

type Timed = Pick<Job, "transitions" | "telemetry">;

const tones: Readonly<Record<JobStatus, JobSpan["tone"]>> = {
  Pending: "wait",
  Sharding: "work",
  Optimizing: "work",
  Completed: "good",
  Failed: "bad",
  Cancelling: "off",
  Cancelled: "off",
};

const stageTitles = {
  fetch: "Fetching",
  shard: "Sharding",
  optimize: "Optimizing",
  evaluate: "Evaluating",
  publish: "Storing",
} as const;

/**
 * The course of a job: its statuses, and once it has ended the steps of its work in place of the
 * statuses in which it worked.
 */
export function listSpans(job: Timed, now: number): JobSpan[] {
  const spans = job.transitions.map(({ status, at }, index): JobSpan => {
    const start = Date.parse(at);
    const next = job.transitions[index + 1]?.at;
    const end = next === undefined ? now : Date.parse(next);
    const ms = isTerminal(status) ? undefined : end - start;
    return { title: status, tone: tones[status], ms, at: start };
  });
  const stages = listStages(job);
  const isOver = spans.at(-1)?.ms === undefined;
  if (!isOver || stages.length === 0) return spans;
  const others = spans.filter(({ tone }) => tone !== "work");
  return [...others.slice(0, 1), ...stages, ...others.slice(1)];
}

function listStages({ telemetry: { stageSeconds = {} }, transitions }: Timed): JobSpan[] {
  let at = Date.parse(transitions[1]?.at ?? "");
  return Object.entries(stageTitles).flatMap(([stage, title]): JobSpan[] => {
    const seconds = stageSeconds[stage as keyof typeof stageTitles];
    if (seconds === undefined) return [];
    const span = { title, tone: "work", ms: seconds * 1000, at } as const;
    at += span.ms;
    return [span];
  });
}
