import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import type { JobTracker } from "./job-tracker.ts";
import { logLine, printOutput } from "./print-output.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import type { ServiceClient } from "./service-client.ts";
import { getBatches, type StepJob, type Submission } from "./submit-batches.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatDecibels } from "../contract/text/format-figure.ts";
import { explainInTitle, explainShortly } from "../report/explain-job.ts";
import {
  classifyOutcome,
  isEndedRow,
  jobTitle,
  outcomes,
  type Report,
  type ReportRow,
} from "../report/report.ts";

/** Last lines of a job's output that its report shows. */
const keptLines = 100;

interface FollowJobsOptions {
  readonly tracker: JobTracker;
  /** Where the jobs' output goes. */
  readonly output: Writable;
  readonly signal: AbortSignal;
  /** After each poll of the batches. */
  readonly onPoll: () => void;
  /** After the job's output was printed. */
  readonly onJobEnd: (job: Job, lastLines: readonly string[]) => void;
}

/**
 * Prints the output of the jobs, one after the other in their order, until all have ended.
 * @throws UnreachableError
 */
export async function followJobs(
  client: ServiceClient,
  submission: Submission,
  options: FollowJobsOptions,
): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const parts = [
    watchBatches(client, submission, { ...options, signal }),
    printOutputs(client, submission, { ...options, signal }),
  ];
  try {
    await Promise.all(parts);
  } finally {
    over.abort();
    await Promise.allSettled(parts);
  }
}

async function printOutputs(
  client: ServiceClient,
  { jobs }: Submission,
  options: FollowJobsOptions,
): Promise<void> {
  const { tracker, signal, onJobEnd } = options;
  for (const job of jobs) {
    if (job.former) {
      const { words } = outcomes[job.former.dryRun ? "planned" : "passed"];
      core.info(`${jobTitle(job)}: ${words} in an earlier run, with the same bytes`);
      // That run may have been for another commit.
      onJobEnd(job.former, []);
      continue;
    }
    const lastLines = await printJobOutput(client, job, options);
    const ended = await retryWhileUnreachable(
      async () => client.call("getJob", { params: { id: job.id } }, { signal }),
      signal,
    );
    tracker.recordJobs([ended]);
    onJobEnd(ended, lastLines);
    core.info(`[batch] ${tracker.statusLine()}`);
  }
}

/** Prints the job's output until it ends. Gives the last lines. */
async function printJobOutput(
  client: ServiceClient,
  job: StepJob,
  { output, signal }: FollowJobsOptions,
): Promise<string[]> {
  const lastLines: string[] = [];
  await printOutput(jobTitle(job), output, async (print) => {
    for await (const line of client.followLogs(job.id, { signal })) {
      await print(line.text);
      lastLines.push(line.text);
      if (lastLines.length > keptLines) lastLines.shift();
    }
  });
  return lastLines;
}

const pollMs = 2_000;
const statusLineMs = 30_000;

interface WatchOptions {
  readonly tracker: JobTracker;
  readonly signal: AbortSignal;
  readonly onPoll: () => void;
}

/** Polls the batches and logs their progress until all jobs have ended. */
async function watchBatches(
  client: ServiceClient,
  { batches }: Submission,
  { tracker, signal, onPoll }: WatchOptions,
): Promise<void> {
  const ids = batches.map(({ id }) => id);
  let loggedAt = performance.now();
  let loggedLine = "";
  let loggedWait: string | undefined;
  for (;;) {
    const current = await retryWhileUnreachable(
      async () => getBatches(client, ids, signal),
      signal,
    );
    tracker.recordBatches(current);
    onPoll();
    if (current.every(({ status }) => isTerminal(status))) return;
    const wait = await explainWait(client, tracker, signal);
    if (wait !== undefined && wait !== loggedWait) logLine(`[batch] ${wait}`);
    loggedWait = wait;
    const line = tracker.statusLine();
    if (line !== loggedLine && performance.now() - loggedAt >= statusLineMs) {
      loggedAt = performance.now();
      loggedLine = line;
      core.info(`[batch] ${line}`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

/** What the next job waits for, where none is worked on and it is more than its turn. */
async function explainWait(
  client: ServiceClient,
  { rows }: JobTracker,
  signal: AbortSignal,
): Promise<string | undefined> {
  const unfinished = rows.filter(({ status }) => !isTerminal(status));
  const [next] = unfinished;
  if (next === undefined || unfinished.some(({ status }) => status !== "Pending")) return undefined;
  const { status, statusReason, statusMessage } = await retryWhileUnreachable(
    async () => client.call("getJob", { params: { id: next.id } }, { signal }),
    signal,
  );
  const isItsTurn = status !== "Pending" || statusReason === "queued";
  return isItsTurn ? undefined : `${jobTitle(next)} waits: ${statusMessage}`;
}

/** Logs the outcome of each job on a line. */
export function logResults({ rows }: Report): void {
  for (const row of rows) logLine(resultLine(row));
}

function resultLine(row: ReportRow): string {
  const outcome = classifyOutcome(row);
  const isBare = outcome === "cancelled" || outcome === "failed";
  if (isEndedRow(row) && isBare) return explainInTitle(row);
  const { size, accuracy } = row.job?.telemetry ?? {};
  const parts = [
    `${jobTitle(row)} ${outcomes[outcome].words}`,
    size && describeSizes(size),
    accuracy && formatDecibels(accuracy.sqnrDb),
    row.job && explainShortly(row.job),
  ];
  return parts.filter(Boolean).join(", ");
}

function describeSizes({
  originalBytes,
  resultBytes,
  ratio,
}: NonNullable<Job["telemetry"]["size"]>): string {
  return `${formatBytes(originalBytes)} → ${formatBytes(resultBytes)} (${ratio.toFixed(2)})`;
}
