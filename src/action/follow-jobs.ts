import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import type { Client } from "../client/create-client.ts";
import type { Job } from "../contract/job.ts";
import { isTerminal } from "../contract/status.ts";
import type { JobTracker } from "./job-tracker.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import { printOutput } from "./print-output.ts";
import type { Submission } from "./submit-batches.ts";

const pollMs = 2_000;
const statusLineMs = 30_000;
/** Of a job's last lines, for its report. */
const keptLines = 100;

interface FollowJobsOptions {
  readonly tracker: JobTracker;
  /** Where the jobs' output goes. */
  readonly output: Writable;
  readonly signal: AbortSignal;
  /** After each look at the batches. */
  readonly onPoll: () => void;
  /** After the job's output was printed, of which it gets the last lines. */
  readonly onJobEnd: (job: Job, lastLines: readonly string[]) => void;
}

/**
 * Prints the output of all jobs, one after the other in their order, until all have ended.
 * @throws UnreachableError
 */
export async function followJobs(
  client: Client,
  submission: Submission,
  following: FollowJobsOptions,
): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([following.signal, over.signal]);
  const parts = [
    watchBatches(client, submission, { ...following, signal }),
    printOutputs(client, submission, { ...following, signal }),
  ];
  try {
    await Promise.all(parts);
  } finally {
    over.abort();
    await Promise.allSettled(parts);
  }
}

/** Keeps the tracker up to date until all jobs have ended. */
async function watchBatches(
  client: Client,
  { batches }: Submission,
  { tracker, signal, onPoll }: FollowJobsOptions,
): Promise<void> {
  let loggedAt = performance.now();
  let loggedLine = "";
  for (;;) {
    const current = await retryWhileUnreachable(
      async () =>
        Promise.all(
          batches.map(async ({ id }) => client.call("getBatch", { params: { id } }, { signal })),
        ),
      signal,
    );
    tracker.recordBatches(current);
    onPoll();
    if (current.every(({ status }) => isTerminal(status))) return;
    const line = tracker.statusLine();
    if (line !== loggedLine && performance.now() - loggedAt >= statusLineMs) {
      loggedAt = performance.now();
      loggedLine = line;
      core.info(`[batch] ${line}`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

async function printOutputs(
  client: Client,
  { jobs }: Submission,
  { tracker, output, signal, onJobEnd }: FollowJobsOptions,
): Promise<void> {
  for (const { id, model, target, former } of jobs) {
    if (former) {
      core.info(`${model} for ${target}: completed by an earlier attempt of this run`);
      continue;
    }
    const lastLines: string[] = [];
    await printOutput(`${model} for ${target}`, output, async (print) => {
      let after = 0;
      await retryWhileUnreachable(async () => {
        for await (const line of client.followLogs(id, { after, signal })) {
          await print(line.text);
          after = line.seq;
          lastLines.push(line.text);
          if (lastLines.length > keptLines) lastLines.shift();
        }
      }, signal);
    });
    const job = await retryWhileUnreachable(
      async () => client.call("getJob", { params: { id } }, { signal }),
      signal,
    );
    tracker.recordJobs([job]);
    onJobEnd(job, lastLines);
    core.info(`[batch] ${tracker.statusLine()}`);
  }
}
